//! Replies of the Redis protocol, version 2.

/// No value.
pub const NULL: &[u8] = b"$-1\r\n";
pub const OK: &[u8] = b"+OK\r\n";

pub fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, b'+', text.as_bytes());
}

/// Ends of lines, perhaps a client's, become blanks.
pub fn error(out: &mut Vec<u8>, text: &str) {
    line(out, b'-', text.replace(['\r', '\n'], " ").as_bytes());
}

pub fn integer(out: &mut Vec<u8>, value: i64) {
    out.push(b':');
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

/// Of `len` replies.
pub fn array(out: &mut Vec<u8>, len: usize) {
    head(out, b'*', len);
}

pub fn bulk_head(out: &mut Vec<u8>, len: usize) {
    head(out, b'$', len);
}

pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    bulk_head(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn head(out: &mut Vec<u8>, mark: u8, len: usize) {
    out.push(mark);
    decimal(out, len as u64);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    out.push(mark);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
