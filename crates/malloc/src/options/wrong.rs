//! Why a setting is refused.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wrong<'a> {
    /// Of the value; empty for the whole.
    pub(crate) part: &'a [u8],
    pub(crate) why: &'static str,
}

impl From<&'static str> for Wrong<'_> {
    fn from(why: &'static str) -> Self {
        Self { part: b"", why }
    }
}
