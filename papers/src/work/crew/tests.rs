use super::*;

#[test]
fn everything_that_is_put_in_is_taken_once() {
    let queue = Queue::new(3, 2);
    let sum = crew(4, |number| {
        if number < 2 {
            (0..1000).for_each(|i| queue.put(number * 1000 + i));
            queue.done();
            return 0;
        }
        std::iter::from_fn(|| queue.take()).sum::<u64>()
    });
    assert_eq!(sum, (0..2000).sum::<u64>());
    assert_eq!(queue.try_take(), None);
}

#[test]
fn a_full_queue_gives_an_item_back() {
    let queue = Queue::new(1, 1);
    let room = queue.lock().items.capacity();
    (0..room).for_each(|i| queue.try_put(i).expect("there is room"));
    assert_eq!(queue.try_put(77), Err(77));
    assert_eq!(queue.try_take(), Some(0));
}
