//! Zones behind one handle: memory nodes.

use crate::config::Request;
use crate::error::Error;
use crate::geometry::{Geometry, Standard};
use crate::zone::Zone;

pub struct Node<'a, G = Standard> {
    /// Among all nodes' frames: a multiple of the largest order's.
    pub first: usize,
    pub zone: Zone<'a, G>,
}

pub struct Nodes<'a, 'n, G = Standard> {
    nodes: &'n [Node<'a, G>],
}

impl<'a, 'n, G: Geometry> Nodes<'a, 'n, G> {
    /// Error: no nodes, or the first frame of one that overlaps or is out of order.
    pub fn new(nodes: &'n [Node<'a, G>]) -> Result<Self, Error> {
        let end = |node: &Node<'a, G>| node.first.checked_add(node.zone.frames());
        let beyond = nodes.iter().find(|node| end(node).is_none());
        let overlap = nodes.windows(2).find(|pair| end(&pair[0]) > Some(pair[1].first)).map(|pair| &pair[1]);
        match beyond.or(overlap) {
            Some(node) => Err(Error::Frames { frames: node.first }),
            None if nodes.is_empty() => Err(Error::Frames { frames: 0 }),
            None => Ok(Self { nodes }),
        }
    }

    /// Tries nodes from near to far; skips unknown ones.
    pub fn get(&self, distances: &[usize], request: Request) -> Result<usize, Error> {
        let mut error = Error::NoMemory;
        for node in distances.iter().filter_map(|node| self.nodes.get(*node)) {
            match node.zone.get(request) {
                Ok(frame) => return Ok(node.first + frame),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    pub fn put(&self, frame: usize, request: Request) -> Result<(), Error> {
        let (_, node) = self.node_of(frame)?;
        node.zone.put(frame - node.first, request)
    }

    pub fn node_of(&self, frame: usize) -> Result<(usize, &'n Node<'a, G>), Error> {
        let at = self.nodes.partition_point(|node| node.first <= frame);
        let found = at.checked_sub(1).map(|at| (at, &self.nodes[at]));
        let frames = self.nodes.last().map_or(0, |node| node.first + node.zone.frames());
        found.filter(|(_, node)| frame - node.first < node.zone.frames()).ok_or(Error::OutOfRange { frame, frames })
    }
}
