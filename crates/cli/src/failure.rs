//! What goes wrong.

use std::fmt;

/// Why `craton` ends with status 1: what was wrong, with which value, and what to do. Printed behind `craton: `.
///
/// Wrong usage is not here: the parser of the command line ends the program with status 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
