//! The language's texts: brackets, compiled into a tree of expressions.
//!
//! **What.** A program is a row of `(fn NAME (PARAMETERS) EXPRESSION…)`. An expression is a whole number, a `"string"`
//! (without escapes), a name, or one of `(set NAME E)`, `(if E E E)`, `(while E E…)`, `(each NAME E E…)`, `(do E…)`, and
//! `(NAME E…)`, which calls a function of the program or, if it has none of that name, an operation of [`Op`].
//!
//! **State.** Names of variables become places in the function's frame; the parameters have the first ones.
//!
//! **Failure.** The first thing that is wrong, in words.

use super::ops::Op;
use super::value::Value;

/// What a program says is to be done.
#[derive(Debug)]
pub enum Expr {
    Value(Value),
    Local(usize),
    Set(usize, Box<Expr>),
    If(Box<[Expr; 3]>),
    While(Box<Expr>, Vec<Expr>),
    Each(usize, Box<Expr>, Vec<Expr>),
    Do(Vec<Expr>),
    Call(usize, Vec<Expr>),
    Op(Op, Vec<Expr>),
}

/// One function.
#[derive(Debug)]
pub struct Function {
    name: String,
    /// Values that a call gives.
    pub parameters: usize,
    /// Places of a frame: those of the parameters and of the other variables.
    pub places: usize,
    /// The value of the last is that of the call.
    pub body: Vec<Expr>,
}

/// Functions, which call each other by their index.
#[derive(Debug)]
pub struct Program {
    /// All of them.
    pub functions: Vec<Function>,
}

impl Program {
    /// The program of a text.
    pub fn new(text: &str) -> Result<Self, String> {
        let forms = Reader { rest: text }.row(None)?;
        let names = forms.iter().map(|form| match form {
            Form::Row(parts) => match parts.as_slice() {
                [Form::Name(word), Form::Name(name), Form::Row(_), ..] if word == "fn" => Ok(name.clone()),
                _ => Err(format!("{form:?} is no function")),
            },
            _ => Err(format!("{form:?} stands outside of a function")),
        });
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        let functions = forms.iter().zip(&names).map(|(form, name)| function(form, name, &names));
        Ok(Self { functions: functions.collect::<Result<_, _>>()? })
    }

    /// The index of the function of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|function| function.name == name)
    }
}

/// Brackets and words.
#[derive(Debug)]
enum Form {
    Int(i64),
    Text(String),
    Name(String),
    Row(Vec<Form>),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Forms up to this closing bracket, or to the end.
    fn row(&mut self, close: Option<char>) -> Result<Vec<Form>, String> {
        let mut row = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(first) = self.rest.chars().next() else {
                return if close.is_none() { Ok(row) } else { Err("a bracket stays open".to_owned()) };
            };
            match first {
                ')' if close == Some(')') => {
                    self.rest = &self.rest[1..];
                    return Ok(row);
                }
                ')' => return Err(format!("a bracket too many before {:?}", self.rest)),
                '(' => {
                    self.rest = &self.rest[1..];
                    row.push(Form::Row(self.row(Some(')'))?));
                }
                '"' => {
                    let (text, rest) = self.rest[1..].split_once('"').ok_or("a string stays open")?;
                    row.push(Form::Text(text.to_owned()));
                    self.rest = rest;
                }
                _ => {
                    let end = self.rest.find(|c: char| c.is_whitespace() || "()\"".contains(c));
                    let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                    row.push(word.parse().map_or_else(|_| Form::Name(word.to_owned()), Form::Int));
                    self.rest = rest;
                }
            }
        }
    }
}

fn function(form: &Form, name: &str, names: &[String]) -> Result<Function, String> {
    let Form::Row(parts) = form else { return Err(format!("{name} is no function")) };
    let [_, _, Form::Row(parameters), body @ ..] = parts.as_slice() else {
        return Err(format!("{name} has no parameters"));
    };
    let mut compiler = Compiler { names, places: Vec::new() };
    for parameter in parameters {
        compiler.place(parameter)?;
    }
    let body = compiler.all(body).map_err(|why| format!("in {name}: {why}"))?;
    Ok(Function { name: name.to_owned(), parameters: parameters.len(), places: compiler.places.len(), body })
}

struct Compiler<'a> {
    /// Of the program's functions.
    names: &'a [String],
    /// The names of this function's variables.
    places: Vec<String>,
}

impl Compiler<'_> {
    /// The place of a variable, a new one if it has none.
    fn place(&mut self, form: &Form) -> Result<usize, String> {
        let Form::Name(name) = form else { return Err(format!("{form:?} is no name")) };
        Ok(self.places.iter().position(|place| place == name).unwrap_or_else(|| {
            self.places.push(name.clone());
            self.places.len() - 1
        }))
    }

    fn all(&mut self, forms: &[Form]) -> Result<Vec<Expr>, String> {
        forms.iter().map(|form| self.expr(form)).collect()
    }

    fn expr(&mut self, form: &Form) -> Result<Expr, String> {
        match form {
            Form::Int(value) => Ok(Expr::Value(Value::Int(*value))),
            Form::Text(text) => Ok(Expr::Value(Value::str(text.as_str()))),
            Form::Name(name) if name == "nil" => Ok(Expr::Value(Value::Nil)),
            Form::Name(name) => {
                let place = self.places.iter().position(|place| place == name);
                place.map(Expr::Local).ok_or_else(|| format!("{name} has no value yet"))
            }
            Form::Row(parts) => match parts.as_slice() {
                [Form::Name(head), parts @ ..] => self.call(head, parts),
                _ => Err(format!("{form:?} calls nothing")),
            },
        }
    }

    fn call(&mut self, head: &str, parts: &[Form]) -> Result<Expr, String> {
        match (head, parts) {
            ("set", [name, value]) => {
                let value = Box::new(self.expr(value)?);
                Ok(Expr::Set(self.place(name)?, value))
            }
            ("if", [condition, yes, no]) => {
                Ok(Expr::If(Box::new([self.expr(condition)?, self.expr(yes)?, self.expr(no)?])))
            }
            ("while", [condition, body @ ..]) => Ok(Expr::While(Box::new(self.expr(condition)?), self.all(body)?)),
            ("each", [name, list, body @ ..]) => {
                let list = Box::new(self.expr(list)?);
                Ok(Expr::Each(self.place(name)?, list, self.all(body)?))
            }
            ("do", body) => Ok(Expr::Do(self.all(body)?)),
            ("set" | "if" | "while" | "each", _) => Err(format!("{head} has parts too few or too many")),
            _ => {
                let arguments = self.all(parts)?;
                match self.names.iter().position(|name| name == head) {
                    Some(function) => Ok(Expr::Call(function, arguments)),
                    None => Op::find(head).map(|op| Expr::Op(op, arguments)).ok_or(format!("{head} is not known")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_names() {
        let program = Program::new("(fn one (a) 1) (fn two (a b) (set c a) (one c))").expect("it is right");
        assert_eq!((program.find("two"), program.find("three")), (Some(1), None));
        assert_eq!((program.functions[1].parameters, program.functions[1].places), (2, 3));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("(fn a () (", "open"),
            ("(fn a () \"b)", "open"),
            ("(fn a () 1))", "too many"),
            ("7", "outside"),
            ("(set a 1)", "no function"),
            ("(fn a () b)", "in a: b has no value"),
            ("(fn a () (b))", "b is not known"),
            ("(fn a () (if 1 2))", "if has parts"),
            ("(fn a () (set 1 2))", "no name"),
            ("(fn a () (1 2))", "calls nothing"),
        ] {
            let why = Program::new(text).map(|_| ()).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
