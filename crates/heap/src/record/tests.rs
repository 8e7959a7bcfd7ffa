use super::*;

#[test]
fn what_is_noted_of_a_page_comes_back_and_leaves_the_rest_alone() {
    let record = PageRecord::default();
    for (heap, class) in [(0, 1), (1, 15), (7, 16), (u16::MAX, u8::MAX)] {
        record.set_heap(heap, class);
        record.set_owner(13);
        assert_eq!((record.heap(), record.owner()), ((heap, class), 13));
        record.set_neighbours(3, 4);
        assert_eq!((record.heap(), record.owner(), record.neighbours()), ((heap, class), 13, (3, 4)));
    }
}
