use super::*;

#[test]
fn a_turn_is_the_long_process_less_the_short_one() {
    let run = |wall_s, minor_faults| Run { wall_s, minor_faults, ..Run::without("glibc", 0, Status::Ok) };
    let results = [
        Result { name: "loop".to_owned(), runs: vec![run(5.0, 2100)] },
        Result { name: "start".to_owned(), runs: vec![run(1.0, 102)] },
    ];
    let figures = turn_figures(&results, 1000);
    assert_eq!(figures.len(), 1);
    assert!((figures[0].faults - 1.0).abs() < 1e-9 && (figures[0].wall_s - 4.0 / 1998.0).abs() < 1e-9);
    assert!(turn_figures(&results[..1], 1000).is_empty());
}
