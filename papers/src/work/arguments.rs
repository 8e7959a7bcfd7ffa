//! The options of `craton-work`, by hand: a parser would be in the figures.

/// The last counts.
pub struct Given<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Given<'a> {
    /// `--name VALUE` or `--name=VALUE`; `flags` take no value. `None`: help.
    pub fn read(arguments: &'a [String], known: &[&str], flags: &[&str]) -> Result<Option<Self>, String> {
        let mut given = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            match name {
                "--help" | "-h" => return Ok(None),
                _ if flags.contains(&name) && inline.is_some() => {
                    return Err(format!("{argument:?}: {name} takes no value"));
                }
                _ if flags.contains(&name) => given.push((name, "")),
                _ if known.contains(&name) => {
                    let value = inline.or_else(|| rest.next().map(String::as_str));
                    given.push((name, value.ok_or_else(|| format!("{name} needs a value"))?));
                }
                _ => return Err(format!("{argument:?} is no option; --help lists them")),
            }
        }
        Ok(Some(Self(given)))
    }

    pub fn find(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// From `least` to `most`.
    pub fn number(&self, name: &str, otherwise: u64, least: u64, most: u64) -> Result<u64, String> {
        let Some(value) = self.find(name) else { return Ok(otherwise) };
        let parsed = value.parse().ok().filter(|n| (least..=most).contains(n));
        parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} to {most}"))
    }

    /// Without the sign that `from_str_radix` accepts.
    pub fn checksum(&self) -> Result<Option<u64>, String> {
        let Some(value) = self.find("--expect") else { return Ok(None) };
        let parsed = u64::from_str_radix(value, 16).ok().filter(|_| !value.starts_with('+'));
        let why = || format!("--expect {value:?}: give up to 16 hexadecimal digits, as the program prints them");
        parsed.map(Some).ok_or_else(why)
    }
}
