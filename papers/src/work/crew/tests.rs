use super::*;

#[test]
fn each_thread_sends_to_the_next_one() {
    let sum = crew(ring(3, 1), |(number, receiver, sender)| {
        sender.send(number).unwrap();
        drop(sender);
        let received: Vec<u64> = receiver.into_iter().collect();
        assert_eq!(received, [(number + 2) % 3]);
        received[0]
    });
    assert_eq!(sum, 3);
}
