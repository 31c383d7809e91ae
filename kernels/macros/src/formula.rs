//! Expressions that are evaluated at launch, by the wrapper, over the values of the kernel's arguments.

use std::cell::RefCell;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{BinOp, Error, Expr, Ident, Lit, Result};

use crate::function::Function;
use crate::instances::Combination;
use crate::json;

/// Whether an expression needs the value of a parameter, and so cannot be a constant.
pub(crate) fn mentions_parameter(expr: &Expr, function: &Function) -> bool {
    fn any(tokens: TokenStream, function: &Function) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(i) => function.param(&i).is_some(),
            proc_macro2::TokenTree::Group(g) => any(g.stream(), function),
            _ => false,
        })
    }
    any(expr.to_token_stream(), function)
}

/// What a formula may name beside integer parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The lengths of memory.
    Arguments,
    /// And the sizes of tensors.
    Tensors,
    /// And the grid and the workgroups of the launch.
    Launch,
}

/// The formulas of one kernel.
#[derive(Clone, Copy)]
pub(crate) struct Formula<'a> {
    pub function: &'a Function,
    pub combination: &'a Combination,
    pub scope: Scope,
    /// What rustc has to compute; number i stands in a formula's text as `{i}`.
    pub constants: &'a RefCell<Vec<TokenStream>>,
}

impl Formula<'_> {
    /// The expression as a JSON string, with the const parameters replaced by their values.
    pub(crate) fn text(self, expr: &Expr) -> Result<String> {
        Ok(json::string(&self.of(expr)?))
    }

    /// A comparison, or several with `||` between them, as a JSON string.
    pub(crate) fn condition(self, expr: &Expr) -> Result<String> {
        Ok(json::string(&self.comparison(expr)?))
    }

    fn comparison(&self, expr: &Expr) -> Result<String> {
        let Expr::Binary(binary) = expr else { return not_compared(expr) };
        let op = binary.op.to_token_stream();
        match binary.op {
            BinOp::Or(_) => {
                Ok(format!("{} || {}", self.comparison(&binary.left)?, self.comparison(&binary.right)?))
            }
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Le(_) | BinOp::Lt(_) | BinOp::Ge(_) | BinOp::Gt(_) => {
                Ok(format!("{} {op} {}", self.of(&binary.left)?, self.of(&binary.right)?))
            }
            _ => not_compared(expr),
        }
    }

    fn of(&self, expr: &Expr) -> Result<String> {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(int) => Ok(int.base10_digits().to_owned()),
                _ => refuse(expr),
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(ident) => self.ident(ident),
                // An associated constant, such as `F::BYTES`.
                None => Ok(self.constant(expr.to_token_stream())),
            },
            Expr::Const(constant) => Ok(self.constant(constant.block.to_token_stream())),
            Expr::Field(field) => self.dimension_of_launch(field),
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
            Expr::MethodCall(call) if call.method == "numel" && call.args.is_empty() => self.numel(call),
            Expr::MethodCall(call) if call.method == "along" && call.args.is_empty() => self.along(call),
            _ => refuse(expr),
        }
    }

    /// What stands for a number that rustc computes.
    fn constant(&self, value: TokenStream) -> String {
        let mut constants = self.constants.borrow_mut();
        constants.push(value);
        format!("{{{}}}", constants.len() - 1)
    }

    /// `grid.x`, `block.y`
    fn dimension_of_launch(&self, field: &syn::ExprField) -> Result<String> {
        let text = field.to_token_stream().to_string().replace(' ', "");
        let is_one = matches!(text.split_once('.'), Some(("grid" | "block", "x" | "y" | "z")));
        if is_one && self.scope == Scope::Launch { Ok(text) } else { refuse(field) }
    }

    /// The number of elements of a tensor.
    fn numel(&self, call: &syn::ExprMethodCall) -> Result<String> {
        let Expr::Path(path) = &*call.receiver else { return refuse(&call.receiver) };
        match path.path.get_ident().filter(|ident| self.function.tensor(ident).is_some()) {
            Some(ident) if self.scope >= Scope::Tensors => Ok(format!("numel_of_{ident}")),
            _ => refuse(call),
        }
    }

    /// The number of elements of a tensor along the dimensions that were chosen.
    fn along(&self, call: &syn::ExprMethodCall) -> Result<String> {
        let Expr::Path(path) = &*call.receiver else { return refuse(&call.receiver) };
        match path.path.get_ident().filter(|ident| self.function.has_along(ident)) {
            Some(ident) if self.scope >= Scope::Tensors => Ok(format!("along_of_{ident}")),
            _ => refuse(call),
        }
    }

    /// The number of elements of a pointer's memory.
    fn len(&self, call: &syn::ExprMethodCall) -> Result<String> {
        let Expr::Path(path) = &*call.receiver else { return refuse(&call.receiver) };
        let Some(ident) = path.path.get_ident() else { return refuse(&call.receiver) };
        match self.function.param(ident) {
            Some(param) if param.is_pointer() => Ok(format!("{ident}.len()")),
            Some(_) => {
                let text = format!("`{ident}` is not a pointer: only memory has a length");
                Err(Error::new(ident.span(), text))
            }
            None => Err(self.function.no_such_param(ident)),
        }
    }

    fn ident(&self, ident: &Ident) -> Result<String> {
        if let Some(param) = self.function.param(ident) {
            if param.is_pointer() {
                let text = format!("`{ident}` is a pointer: only integers can be used here");
                return Err(Error::new(ident.span(), text));
            }
            return Ok(ident.to_string());
        }
        for (param, _, instance) in &self.combination.generics {
            if param == ident {
                return Ok(format!("({})", instance.value));
            }
        }
        if self.function.is_dimension(ident) && self.scope >= Scope::Tensors {
            return Ok(ident.to_string());
        }
        Err(self.function.no_such_param(ident))
    }
}

fn not_compared<T>(expr: &Expr) -> Result<T> {
    let text = "a condition is a comparison, such as `count <= 256`, or several with `||` between them";
    Err(Error::new_spanned(expr, text))
}

fn refuse<T>(expr: &impl ToTokens) -> Result<T> {
    let text = "the launch wrapper evaluates this: it may have integers, integer parameters, const parameters, \
                `+ - * / %`, parentheses, `.div_ceil(…)`, `.min(…)`, `.max(…)`, and a pointer's `.len()`; of parameters \
                also constants, and the sizes of tensors";
    Err(Error::new_spanned(expr, text))
}
