//! Walks the tree of a program.
//!
//! **What.** A call has a frame on the heap, as the frames of such languages do; an operation gets its arguments in a
//! list of their own.
//!
//! **Failure.** A wrong operation, or calls too deep, end the run in words.

use super::parse::{Expr, Program};
use super::value::Value;
use craton_lab::rng::Rng;

/// Calls within calls at most.
const DEEPEST: u32 = 200;

/// A run of a program.
pub struct Machine<'a> {
    program: &'a Program,
    rng: Rng,
    depth: u32,
}

impl<'a> Machine<'a> {
    /// A machine whose random numbers are these.
    pub fn new(program: &'a Program, rng: Rng) -> Self {
        Self { program, rng, depth: 0 }
    }

    /// The value of a call of the function at this index.
    pub fn call(&mut self, function: usize, arguments: Vec<Value>) -> Result<Value, String> {
        let function = &self.program.functions[function];
        if arguments.len() != function.parameters || self.depth == DEEPEST {
            return Err(format!("{} arguments at depth {}", arguments.len(), self.depth));
        }
        self.depth += 1;
        let mut frame = arguments;
        frame.resize(function.places, Value::Nil);
        let value = self.all(&function.body, &mut frame);
        self.depth -= 1;
        value
    }

    /// The value of the last of these.
    fn all(&mut self, body: &[Expr], frame: &mut [Value]) -> Result<Value, String> {
        body.iter().try_fold(Value::Nil, |_, expr| self.value(expr, frame))
    }

    fn value(&mut self, expr: &Expr, frame: &mut [Value]) -> Result<Value, String> {
        match expr {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Local(place) => Ok(frame[*place].clone()),
            Expr::Set(place, expr) => {
                frame[*place] = self.value(expr, frame)?;
                Ok(Value::Nil)
            }
            Expr::If(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if self.value(condition, frame)?.is_true() { yes } else { no };
                self.value(chosen, frame)
            }
            Expr::While(condition, body) => {
                while self.value(condition, frame)?.is_true() {
                    self.all(body, frame)?;
                }
                Ok(Value::Nil)
            }
            Expr::Each(place, list, body) => {
                let Value::List(list) = self.value(list, frame)? else {
                    return Err("each needs a list".to_owned());
                };
                let mut at = 0;
                // The body may make the list longer: it is borrowed for one element at a time.
                loop {
                    let Some(value) = list.borrow().get(at).cloned() else { break };
                    frame[*place] = value;
                    self.all(body, frame)?;
                    at += 1;
                }
                Ok(Value::Nil)
            }
            Expr::Do(body) => self.all(body, frame),
            Expr::Call(function, arguments) => {
                let arguments = self.arguments(arguments, frame)?;
                self.call(*function, arguments)
            }
            Expr::Op(op, arguments) => {
                let arguments = self.arguments(arguments, frame)?;
                op.apply(&arguments, &mut self.rng)
            }
        }
    }

    fn arguments(&mut self, exprs: &[Expr], frame: &mut [Value]) -> Result<Vec<Value>, String> {
        let mut arguments = Vec::with_capacity(exprs.len());
        for expr in exprs {
            arguments.push(self.value(expr, frame)?);
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last function gives, shown.
    fn run(text: &str) -> Result<String, String> {
        let program = Program::new(text)?;
        let value = Machine::new(&program, Rng::new(1, 1)).call(program.functions.len() - 1, Vec::new())?;
        let mut shown = String::new();
        value.show(&mut shown);
        Ok(shown)
    }

    #[test]
    fn programs_give_their_values() {
        for (text, value) in [
            ("(+ 2 (* 3 (- 5 1)))", "14"),
            ("(% 17 5)", "2"),
            ("(if (< 1 2) \"yes\" \"no\")", "yes"),
            ("(set i 0) (set s \"\") (while (< i 5) (set s (str s i)) (set i (+ i 1))) s", "01234"),
            ("(join (sort (split \"b,c,a\" \",\")) \"\")", "abc"),
            ("(set out \"\") (each c (split \"abc\" \"\") (set out (str c out))) out", "cba"),
            ("(set l (list 1)) (each x l (if (< x 5) (push l (+ x 1)) nil)) (join l \"\")", "12345"),
            (
                "(set t (table)) (put t \"k\" 1) (put t \"a\" 2) (str (join (keys t) \"\") (get t \"k\" 0) (len t))",
                "ak12",
            ),
            ("(str (part \"hello\" 1 3) (part \"hello\" 4 9) (upper \"x\") (replace \"a-b\" \"-\" \"+\"))", "elloXa+b"),
            ("(str (int \"12\") (int \"x\") (at (list 7) 0) (at (list 7) 1) (list 1 2) (table))", "127[2]{0}"),
        ] {
            assert_eq!(run(&format!("(fn main () {text})")).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn functions_call_themselves() {
        let text = "(fn f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (fn main () (f 15))";
        assert_eq!(run(text).as_deref(), Ok("610"));
    }

    #[test]
    fn what_goes_wrong_is_said() {
        for (text, part) in [
            ("(fn main () (+ 1 \"a\"))", "Add"),
            ("(fn main () (% 1 0))", "Rem"),
            ("(fn main () (each x 1 x))", "list"),
            ("(fn main () (main))", "depth 200"),
            ("(fn f (a) a) (fn main () (f))", "0 arguments"),
        ] {
            let why = run(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
