use super::*;

#[test]
fn each_order_frees_every_block_once() {
    for order in [Order::First, Order::Last, Order::EvenThenOdd] {
        let mut held = Held::default();
        held.fill(&mut Rng::new(1, 1), 16, 25);
        assert_eq!(held.blocks.iter().flatten().count(), 25);
        held.empty(order);
        assert_eq!(held.blocks.iter().flatten().count(), 0);
    }
}

#[test]
fn orders_differ_in_their_sums() {
    let sum = |order| {
        let mut held = Held::default();
        held.fill(&mut Rng::new(1, 1), 16, 25);
        held.empty(order);
        held.sum
    };
    let sums = [sum(Order::First), sum(Order::Last), sum(Order::EvenThenOdd)];
    assert!(sums[0] != sums[1] && sums[1] != sums[2] && sums[0] != sums[2]);
}
