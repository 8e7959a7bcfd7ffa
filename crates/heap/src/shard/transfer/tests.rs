use super::*;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

const CLASS: usize = 4;

fn chain(n: u32) -> Chain {
    let mut chain = Chain::EMPTY;
    for _ in 0..n {
        let object = Box::leak(Box::new([0u64; 8])).as_mut_ptr().cast();
        // SAFETY: 64 bytes that only this test uses.
        unsafe { chain.push(object) };
    }
    chain
}

fn empty() -> Box<Transfer> {
    Box::new(Transfer::EMPTY)
}

#[test]
fn a_batch_comes_out_as_it_went_in() {
    let transfer = empty();
    let n = size_class::batch(CLASS);
    transfer.put(CLASS, chain(n)).unwrap();
    assert_eq!(transfer.bytes(), n as usize * size_class::size_of_class(CLASS));
    assert!(transfer.take(CLASS + 1).is_none());
    let mut back = transfer.take(CLASS).unwrap();
    assert_eq!((0..).take_while(|_| back.pop().is_some()).count(), n as usize);
    assert!(transfer.take(CLASS).is_none());
    assert_eq!(transfer.bytes(), 0);
}

#[test]
fn what_is_not_full_too_large_or_too_much_comes_back_untouched() {
    let transfer = empty();
    let n = size_class::batch(CLASS);
    let short = transfer.put(CLASS, chain(n - 1)).unwrap_err();
    assert_eq!(short.len(), n - 1);
    let large = size_class::class_of(MAX_OBJECT + 1);
    assert_eq!(transfer.put(large, chain(size_class::batch(large))).unwrap_err().len(), size_class::batch(large));
    for _ in 0..SLOTS {
        transfer.put(CLASS, chain(n)).unwrap();
    }
    let mut over = transfer.put(CLASS, chain(n)).unwrap_err();
    assert_eq!((0..).take_while(|_| over.pop().is_some()).count(), n as usize);
    let mut drained = 0;
    transfer.drain(|class, batch| {
        assert_eq!((class, batch.len()), (CLASS, n));
        drained += 1;
    });
    assert_eq!((drained, transfer.bytes()), (SLOTS, 0));
}

#[test]
fn a_drain_takes_the_batches_of_every_class() {
    let transfer = empty();
    let kept: Vec<usize> = (1..=CLASSES).filter(|class| Transfer::keeps(*class)).collect();
    assert_eq!(kept.last(), Some(&size_class::class_of(MAX_OBJECT)));
    for class in &kept {
        transfer.put(*class, chain(size_class::batch(*class))).unwrap();
    }
    let mut drained = Vec::new();
    transfer.drain(|class, batch| {
        assert_eq!(batch.len(), size_class::batch(class));
        drained.push(class);
    });
    assert_eq!((drained, transfer.bytes()), (kept, 0));
}

#[test]
fn m4_no_batch_is_ever_in_two_hands() {
    let transfer = empty();
    let n = size_class::batch(CLASS);
    let heads = |chains: &[Chain]| -> Vec<usize> { chains.iter().map(|c| c.head() as usize).collect() };
    let own: Vec<Vec<Chain>> = (0..4).map(|_| (0..3).map(|_| chain(n)).collect()).collect();
    let all: BTreeSet<usize> = own.iter().flat_map(|c| heads(c)).collect();
    let left: Vec<Vec<Chain>> = std::thread::scope(|scope| {
        let threads: Vec<_> = own
            .into_iter()
            .map(|mut own| {
                let transfer = &transfer;
                scope.spawn(move || {
                    for i in 0..50_000 {
                        if i % 3 == 0 {
                            own.extend(transfer.take(CLASS));
                        } else if let Some(batch) = own.pop()
                            && let Err(batch) = transfer.put(CLASS, batch)
                        {
                            own.push(batch);
                        }
                    }
                    own
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut seen: Vec<usize> = left.iter().flat_map(|c| heads(c)).collect();
    transfer.drain(|_, batch| seen.push(batch.head() as usize));
    assert_eq!(seen.len(), all.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), all);
}
