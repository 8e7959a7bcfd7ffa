use super::*;

#[test]
fn every_script_runs_and_gives_text() {
    let mut machine = Machine::new();
    for number in 0..20 {
        let value = machine.round(Rng::new(1, number), number).unwrap_or_else(|why| panic!("{number}: {why}"));
        assert!(value.is_string() || value.is_array(), "{number}: {value:?}");
        assert!(value.to_string().len() > 50, "{number}: {value:?}");
    }
}
