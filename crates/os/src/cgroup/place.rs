//! Finds the files of the process's control group.
//!
//! The group's directory is its hierarchy's mount plus the rest of its name; for a name outside of
//! the mount (container), the mount's top.

use crate::small_file::{Lines, PathText, Unread};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    V2,
    V1Memory,
    V1Cpu,
}

impl Kind {
    /// From `number:controllers:name` of `/proc/self/cgroup`.
    fn name_in(self, line: &[u8]) -> Option<&[u8]> {
        let mut fields = line.splitn(3, |b| *b == b':');
        let (number, controllers, name) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match self {
            Self::V2 => number == b"0" && controllers.is_empty(),
            Self::V1Memory => has_word(controllers, b"memory"),
            Self::V1Cpu => has_word(controllers, b"cpu"),
        };
        (ours && name.first() == Some(&b'/')).then_some(name)
    }

    fn mounted_as(self, filesystem: &[u8], options: &[u8]) -> bool {
        match self {
            Self::V2 => filesystem == b"cgroup2",
            Self::V1Memory => filesystem == b"cgroup" && has_word(options, b"memory"),
            Self::V1Cpu => filesystem == b"cgroup" && has_word(options, b"cpu"),
        }
    }
}

fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|b| *b == b',').any(|w| w == word)
}

pub(super) struct Place {
    dir: PathText,
    top: usize,
}

impl Place {
    pub(super) fn find(root: &[u8], kind: Kind) -> Result<Option<Self>, (&'static str, Unread)> {
        let find = |line: &[u8]| kind.name_in(line).map(PathText::new);
        let Some(Some(name)) = find_line(root, "/proc/self/cgroup", find)? else { return Ok(None) };
        let mut best = None;
        let place = find_line(root, "/proc/self/mountinfo", |line| {
            let mount = Mount::parse(line, kind)?;
            let mut dir = PathText::new(root)?;
            if !push_unescaped(&mut dir, mount.at) {
                return None;
            }
            let top = dir.as_bytes().len();
            match mount.rest(name.as_bytes()) {
                Some(rest) if dir.push(rest) => return Some(Self { dir, top }),
                _ if best.is_none() => best = Some(Self { dir, top }),
                _ => {}
            }
            None
        })?;
        Ok(place.or(best))
    }

    pub(super) fn dir(&mut self) -> &mut PathText {
        &mut self.dir
    }

    /// The group's directory and each above; `look` leaves the path unchanged.
    pub(super) fn walk_up(mut self, mut look: impl FnMut(&mut PathText)) {
        loop {
            look(&mut self.dir);
            let below = &self.dir.as_bytes()[self.top..];
            let Some(slash) = below.iter().rposition(|b| *b == b'/') else { return };
            self.dir.truncate(self.top + slash);
        }
    }
}

fn find_line<T>(
    root: &[u8],
    file: &'static str,
    mut find: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Option<T>, (&'static str, Unread)> {
    let Some(mut path) = PathText::new(root) else { return Ok(None) };
    if !path.push(file.as_bytes()) {
        return Ok(None);
    }
    let mut lines = match Lines::open(&path) {
        Ok(lines) => lines,
        Err(unread) if unread.is_missing() => return Ok(None),
        Err(unread) => return Err((file, unread)),
    };
    while let Some(line) = lines.next_line() {
        if let Some(found) = find(line) {
            return Ok(Some(found));
        }
    }
    lines.outcome().map(|()| None).map_err(|unread| (file, unread))
}

/// `id parent device root at options [more…] - filesystem source options`.
struct Mount<'a> {
    root: &'a [u8],
    at: &'a [u8],
}

impl<'a> Mount<'a> {
    fn parse(line: &'a [u8], kind: Kind) -> Option<Self> {
        let mut fields = line.split(|b| *b == b' ');
        let (root, at) = (fields.nth(3)?, fields.next()?);
        fields.find(|f| *f == b"-")?;
        let (filesystem, options) = (fields.next()?, fields.nth(1)?);
        kind.mounted_as(filesystem, options).then_some(Self { root, at })
    }

    /// `None`: the group is not in the mount.
    fn rest<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        // Outside of the namespace.
        if name.split(|b| *b == b'/').any(|part| part == b"..") {
            return None;
        }
        let rest = if self.root == b"/" { name } else { name.strip_prefix(self.root)? };
        match rest {
            b"/" => Some(b""),
            _ if rest.is_empty() || rest[0] == b'/' => Some(rest),
            _ => None,
        }
    }
}

/// Escaped bytes are `\` and three octal digits.
fn push_unescaped(path: &mut PathText, text: &[u8]) -> bool {
    let mut rest = text;
    while let [first, more @ ..] = rest {
        let (byte, after) = match (first, more) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after)
            }
            _ => (*first, more),
        };
        if !path.push(&[byte]) {
            return false;
        }
        rest = after;
    }
    true
}
