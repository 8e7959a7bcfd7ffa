//! Colours: one for each allocator, and a scale around 1 for ratios.
//!
//! **From.** M. Okabe, K. Ito: Color Universal Design, 2008: eight colours that people with common
//! colour blindness can tell apart. No dozen have that property, so marks also differ in shape and
//! lines in dashes.

/// Light in a dark page too.
pub const GROUND: &str = "#ffffff";
pub const INK: &str = "#1c2024";
pub const QUIET: &str = "#59616b";
pub const GRID: &str = "#e4e7eb";
pub const RULE: &str = "#8a929c";

const CRATON: &str = "#d1260f";

/// From dark to light.
const VARIANTS: [(&str, &str); 21] = [
    ("craton-each", "#6b130a"),
    ("craton-4k", "#e2604a"),
    ("craton-2k", "#f0a08f"),
    ("craton-at-once", "#a8574a"),
    ("craton-never", "#d9b3ab"),
    ("craton-strict", "#6b130a"),
    ("craton-file", "#e2604a"),
    ("craton-written-back", "#f0a08f"),
    ("craton-untold", "#a8574a"),
    ("craton-one-colour", "#f0a08f"),
    ("craton cache", "#f0a08f"),
    ("craton-gc", "#e2604a"),
    ("craton-frames", "#6b130a"),
    ("craton-log, static", "#f0a08f"),
    ("craton-log, base", "#f0a08f"),
    ("craton-log, +interleaved", "#e2604a"),
    ("craton-log, above 8 kib", "#6b130a"),
    ("craton-log, above 64 kib", "#a8574a"),
    ("craton-log, above 256 kib", "#e2604a"),
    ("craton-log, above 1024 kib", "#f0a08f"),
    ("craton-kv-always", "#6b130a"),
];

const NAMED: [(&str, &str); 21] = [
    ("debian-jemalloc", "#6a9fd4"),
    ("debian-mimalloc", "#93c47d"),
    ("debian-tcmalloc", "#f2c46d"),
    ("mimalloc2", "#5bbd9c"),
    ("glibc", "#4d5560"),
    ("jemalloc", "#0072b2"),
    ("mimalloc", "#009e73"),
    ("tcmalloc", "#e69f00"),
    ("snmalloc", "#56b4e9"),
    ("gperftools", "#b8860b"),
    ("rpmalloc", "#cc79a7"),
    ("scudo", "#44908a"),
    ("hoard", "#8f8f2e"),
    ("mesh", "#7a4ba0"),
    ("hardened", "#332288"),
    ("musl", "#9c6b4e"),
    ("tbb", "#5b7fd0"),
    ("lockfree", "#3b7a2a"),
    ("supermalloc", "#a0a7b0"),
    ("dlmalloc", "#7d2248"),
    ("program", "#a6761d"), // beside "page allocator", whose hash has the same colour
];

const OTHERS: [&str; 8] = ["#3d6f99", "#a6761d", "#66a61e", "#7570b3", "#c2679a", "#1b9e8a", "#8c8c8c", "#6f4e37"];

/// Or a variant, such as `craton-2`.
pub fn is_craton(name: &str) -> bool {
    name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("craton"))
}

/// `tcmalloc-4.2` has that of `tcmalloc`.
pub fn of(name: &str) -> &'static str {
    let lower = name.to_ascii_lowercase();
    if is_craton(name) {
        return VARIANTS.iter().find(|(known, _)| *known == lower).map_or(CRATON, |(_, colour)| colour);
    }
    match NAMED.iter().find(|(known, _)| lower.starts_with(known)) {
        Some((_, colour)) => colour,
        None => OTHERS[hash(&lower) % OTHERS.len()],
    }
}

/// For shape and dash.
pub fn rank(name: &str) -> usize {
    let lower = name.to_ascii_lowercase();
    if is_craton(name) {
        return VARIANTS.iter().position(|(known, _)| *known == lower).map_or(0, |place| place + 1);
    }
    match NAMED.iter().position(|(known, _)| lower.starts_with(known)) {
        Some(place) => place + 1,
        None => hash(&lower),
    }
}

/// The same on every machine.
fn hash(name: &str) -> usize {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    hash as usize
}

const SCALE: [[f64; 3]; 7] = [
    [16.0, 78.0, 139.0],
    [67.0, 139.0, 202.0],
    [166.0, 206.0, 240.0],
    [247.0, 247.0, 247.0],
    [253.0, 204.0, 138.0],
    [226.0, 129.0, 40.0],
    [140.0, 63.0, 4.0],
];

/// `limit` (> 1) and its inverse get the darkest.
pub fn of_ratio(ratio: f64, limit: f64) -> (String, &'static str) {
    let share = (ratio.ln() / limit.max(1.01).ln()).clamp(-1.0, 1.0);
    let place = (share + 1.0) / 2.0 * (SCALE.len() - 1) as f64;
    let below = (place as usize).min(SCALE.len() - 2);
    let part = place - below as f64;
    let mixed: [f64; 3] = std::array::from_fn(|i| SCALE[below][i] + (SCALE[below + 1][i] - SCALE[below][i]) * part);
    let [r, g, b] = mixed.map(|channel| channel.round() as u8);
    // White's contrast with black is 21; the inks' contrasts multiply to it.
    let ink = if contrast_with_white(mixed) >= 21f64.sqrt() { "#ffffff" } else { "#000000" };
    (format!("#{r:02x}{g:02x}{b:02x}"), ink)
}

/// 1 to 21, by the web's accessibility guidelines.
fn contrast_with_white(rgb: [f64; 3]) -> f64 {
    let linear = rgb.map(|channel| {
        let c = channel / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
}
