mod cost;
mod crash;
mod model;
mod ranges;
mod refused;
mod world;
