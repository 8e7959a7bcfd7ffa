use super::*;
use std::string::String;
use std::vec::Vec;

/// As another process does.
fn ask(mailbox: &Mailbox, number: u32, text: &[u8]) {
    let mut whole = [0; Mailbox::TEXT];
    whole[..text.len()].copy_from_slice(text);
    // SAFETY: this test's mailbox.
    unsafe { mailbox.request.get().write_volatile(whole) };
    mailbox.request_len.store(text.len() as u32, Relaxed);
    mailbox.asked.store(number, Relaxed);
}

fn answer(mailbox: &Mailbox) -> String {
    // SAFETY: as above.
    let whole = unsafe { mailbox.answer.get().read_volatile() };
    String::from_utf8(whole[..mailbox.answer_len.load(Relaxed) as usize].to_vec()).unwrap()
}

#[test]
fn a_request_is_served_once_and_answered() {
    let (mailbox, mut seen) = (Mailbox::empty(), Vec::new());
    assert!(!mailbox.is_asked());
    mailbox.serve(|_| unreachable!("nobody asks"));
    ask(&mailbox, 7, b"a=b");
    assert!(mailbox.is_asked());
    mailbox.serve(|text| {
        seen.push(text.to_vec());
        Ok(())
    });
    assert!(!mailbox.is_asked());
    assert_eq!((mailbox.answered.load(Relaxed), answer(&mailbox)), (7, String::new()));
    mailbox.serve(|_| unreachable!("it was served"));
    ask(&mailbox, 8, b"c");
    mailbox.serve(|_| Err("too bad".into()));
    assert_eq!((mailbox.answered.load(Relaxed), answer(&mailbox)), (8, String::from("0:too bad")));
    assert_eq!(seen, [b"a=b"]);
}

#[test]
fn each_setting_of_a_request_is_set_and_those_that_are_refused_are_named() {
    let (mailbox, mut seen) = (Mailbox::empty(), Vec::new());
    ask(&mailbox, 3, b"a=1\0b=2\0c=3");
    mailbox.serve(|setting| {
        seen.push(setting.to_vec());
        if setting == b"b=2" { Ok(()) } else { Err(Wrong { part: &setting[..1], why: "no" }) }
    });
    assert_eq!(seen, [b"a=1", b"b=2", b"c=3"]);
    assert_eq!(answer(&mailbox), "0:\"a\" no\x002:\"c\" no");
    ask(&mailbox, 4, &[0; Mailbox::TEXT]);
    mailbox.serve(|_| Err("what does not fit of the answer is cut".into()));
    assert!(answer(&mailbox).starts_with("0:what does not fit"));
}

#[test]
fn a_length_beyond_the_text_is_cut() {
    let mailbox = Mailbox::empty();
    ask(&mailbox, 1, &[b'y'; Mailbox::TEXT]);
    mailbox.request_len.store(u32::MAX, Relaxed);
    mailbox.serve(|text| if text.len() == Mailbox::TEXT { Ok(()) } else { Err("other".into()) });
    assert_eq!(answer(&mailbox), "");
}
