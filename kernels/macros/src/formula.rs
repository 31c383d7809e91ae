//! Expressions that are evaluated at launch, by the wrapper, over the values of the kernel's arguments.

use quote::ToTokens;
use syn::{BinOp, Error, Expr, Ident, Lit, Result};

use crate::function::Function;
use crate::instances::Combination;
use crate::json;

/// Whether an expression needs the value of a parameter, and so cannot be a constant.
pub fn mentions_parameter(expr: &Expr, function: &Function) -> bool {
    fn any(tokens: proc_macro2::TokenStream, function: &Function) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(i) => function.param(&i).is_some(),
            proc_macro2::TokenTree::Group(g) => any(g.stream(), function),
            _ => false,
        })
    }
    any(expr.to_token_stream(), function)
}

/// The expression as a JSON string, with the const parameters replaced by their values.
pub fn text(expr: &Expr, function: &Function, combination: &Combination) -> Result<String> {
    Ok(json::string(&Formula { function, combination }.of(expr)?))
}

struct Formula<'a> {
    function: &'a Function,
    combination: &'a Combination,
}

impl Formula<'_> {
    fn of(&self, expr: &Expr) -> Result<String> {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(int) => Ok(int.base10_digits().to_owned()),
                _ => refuse(expr),
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(ident) => self.ident(ident),
                None => refuse(expr),
            },
            Expr::Paren(paren) => Ok(format!("({})", self.of(&paren.expr)?)),
            Expr::Group(group) => self.of(&group.expr),
            Expr::Binary(binary) => {
                let (BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_)) =
                    binary.op
                else {
                    return refuse(expr);
                };
                let op = binary.op.to_token_stream();
                Ok(format!("{} {op} {}", self.of(&binary.left)?, self.of(&binary.right)?))
            }
            Expr::MethodCall(call) if ["div_ceil", "min", "max"].iter().any(|m| call.method == m) => {
                let args = call.args.iter().map(|a| self.of(a)).collect::<Result<Vec<_>>>()?;
                Ok(format!("({}).{}({})", self.of(&call.receiver)?, call.method, args.join(", ")))
            }
            Expr::MethodCall(call) if call.method == "len" && call.args.is_empty() => self.len(call),
            _ => refuse(expr),
        }
    }

    /// The number of elements of a pointer's memory.
    fn len(&self, call: &syn::ExprMethodCall) -> Result<String> {
        let Expr::Path(path) = &*call.receiver else { return refuse(&call.receiver) };
        let Some(ident) = path.path.get_ident() else { return refuse(&call.receiver) };
        match self.function.param(ident) {
            Some(param) if param.is_pointer() => Ok(format!("{ident}.len()")),
            Some(_) => {
                let text = format!("`{ident}` is no pointer: only memory has a length");
                Err(Error::new(ident.span(), text))
            }
            None => Err(self.function.no_such_param(ident)),
        }
    }

    fn ident(&self, ident: &Ident) -> Result<String> {
        if let Some(param) = self.function.param(ident) {
            if param.is_pointer() {
                let text = format!("`{ident}` is a pointer: only integers can be reckoned with here");
                return Err(Error::new(ident.span(), text));
            }
            return Ok(ident.to_string());
        }
        for (param, _, instance) in &self.combination.generics {
            if param == ident {
                return Ok(format!("({})", instance.value));
            }
        }
        Err(self.function.no_such_param(ident))
    }
}

fn refuse<T>(expr: &Expr) -> Result<T> {
    let text = "the launch wrapper evaluates this: it may have integers, integer parameters, const parameters, \
                `+ - * / %`, parentheses, `.div_ceil(…)`, `.min(…)`, `.max(…)`, and a pointer's `.len()`";
    Err(Error::new_spanned(expr, text))
}
