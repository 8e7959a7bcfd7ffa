use super::*;

#[test]
fn documents_have_about_the_nodes_that_were_asked_for() {
    let mut rng = Rng::new(1, 1);
    for size in [8, 100, 5000] {
        let made = node(&mut rng, &mut size.clone(), 0);
        // Members of the same name replace each other.
        assert!((size / 2..=size).contains(&count(&made)), "{} of {size}", count(&made));
    }
}

#[test]
fn documents_survive_their_text_and_edits_change_them() {
    let mut rng = Rng::new(1, 1);
    let mut document = node(&mut rng, &mut 2000, 0);
    let mut rounds = Rounds { rng: Rng::new(1, 2), kept: Vec::new(), sum: 0 };
    for _ in 0..20 {
        let again = rounds.through_text(&document);
        assert_eq!(again, document);
        (0..50).for_each(|_| edit(&mut document, &mut rng));
        assert_ne!(again, document);
    }
}
