use super::*;

/// In parts of `size` bytes.
fn parse(data: &[u8], size: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
    let (mut parser, mut commands, mut begin, mut end) = (Parser::default(), Vec::new(), 0, 0);
    loop {
        match parser.parse(&data[begin..end])? {
            Parsed::Incomplete if end == data.len() => return Ok(commands),
            Parsed::Incomplete => end = data.len().min(end + size),
            Parsed::Command(used) => {
                commands.push(parser.args(&data[begin..end]).from(0).map(<[u8]>::to_vec).collect());
                begin += used;
            }
        }
    }
}

#[test]
fn commands_are_the_same_in_parts_of_every_size() {
    let data = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$6\r\nb\r\n*1\n\r\nPING\r\n\r\nset \"a b\\x41\\n\" 'c\\'d' e\n*0\r\n*-1\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n";
    let expected: Vec<Vec<&[u8]>> = vec![
        vec![b"SET", b"a", b"b\r\n*1\n"],
        vec![b"PING"],
        vec![],
        vec![b"set", b"a bA\n", b"c'd", b"e"],
        vec![],
        vec![],
        vec![b"GET", b""],
    ];
    for size in 1..=data.len() {
        assert_eq!(parse(data, size).unwrap(), expected, "{size}");
    }
}

#[test]
fn what_breaks_the_protocol_is_named() {
    for (data, error) in [
        (&b"*x\r\n"[..], ProtocolError::Count),
        (b"*9999999\r\n", ProtocolError::Count),
        (b"*1\r\n$-1\r\n", ProtocolError::Length),
        (b"*1\r\n$536870913\r\n", ProtocolError::Length),
        (b"*1\r\nPING\r\n", ProtocolError::NoLength(b'P')),
        (b"*1\r\n\r\n", ProtocolError::NoLength(b'\n')),
        (b"set \"a\n", ProtocolError::Quotes),
        (b"set \"a\"b\n", ProtocolError::Quotes),
        (&[b'a'; (64 << 10) + 1], ProtocolError::LineTooLong),
    ] {
        assert_eq!(parse(data, 1000), Err(error));
    }
    let three = b"*3\r\n$400000000\r\n";
    let mut parser = Parser::default();
    assert_eq!(parser.parse(three), Ok(Parsed::Incomplete));
}

#[test]
fn numbers_are_written_one_way() {
    for (text, value) in [
        (&b"0"[..], Some(0)),
        (b"-1", Some(-1)),
        (b"9223372036854775807", Some(i64::MAX)),
        (b"9223372036854775808", None),
        (b"", None),
        (b"-", None),
        (b"-0", None),
        (b"01", None),
        (b"+1", None),
        (b" 1", None),
        (b"1a", None),
    ] {
        assert_eq!(number(text), value, "{}", text.escape_ascii());
    }
}
