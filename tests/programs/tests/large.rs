use craton_programs::{Program, cc};

fn part(part: &str) {
    let program = cc("large.c", &["-rdynamic", "-pthread"]);
    let output = Program::new(&program).arg(part).preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(program.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
}

#[test]
fn contents_survive_changes_between_all_sizes_and_no_mappings_pile_up() {
    part("any_size");
}

#[test]
fn threads_and_forked_children_keep_their_huge_objects() {
    part("forked");
}

#[test]
fn every_alignment_up_to_a_gibibyte_is_kept_without_waste_that_stays() {
    part("alignments");
}

#[test]
fn there_may_be_more_huge_objects_than_mappings() {
    part("many");
}

#[test]
fn an_object_whose_change_of_size_is_refused_is_as_it_was() {
    part("refusals");
}

#[test]
fn an_object_that_grows_is_moved_and_not_copied() {
    part("moves");
}

#[test]
fn huge_objects_that_come_and_go_take_no_faults_and_are_not_kept_for_long() {
    part("churn");
}
