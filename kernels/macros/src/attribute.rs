//! The text between the attribute's parentheses.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Result, Token, Type, bracketed, parenthesized};

/// One `#[amdgpu_kernel(…)]`.
pub(crate) struct Attribute {
    pub span: Span,
    pub name: Option<LitStr>,
    pub lists: Vec<List>,
    pub launch: Launch,
}

/// `T in […]` or `const N in […]`.
pub(crate) struct List {
    pub param: Ident,
    pub is_const: bool,
    pub instances: Vec<Instance>,
}

/// One entry of a list.
#[derive(Clone)]
pub(crate) struct Instance {
    /// What stands for it in the kernel's name.
    pub name: String,
    /// The type or the constant.
    pub value: TokenStream,
}

/// `launch(…)`.
#[derive(Default)]
pub(crate) struct Launch {
    pub workgroup: Option<Expr>,
    pub max_workgroup: Option<Expr>,
    pub items_per_lane: Option<Expr>,
    pub items: Option<Expr>,
    pub rows: Option<Expr>,
    pub columns: Option<Expr>,
    pub grid: Option<[Expr; 3]>,
    pub lds_bytes: Option<Expr>,
}

const KEYS: &str = "`name = \"…\"`, `T in […]`, `const N in […]` and `launch(…)`";
const LAUNCH_KEYS: &str =
    "`workgroup`, `max_workgroup`, `items_per_lane`, `items`, `rows`, `columns`, `grid` and `lds_bytes`";

impl Parse for Attribute {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attribute =
            Attribute { span: input.span(), name: None, lists: Vec::new(), launch: Launch::default() };
        let mut has_launch = false;
        while !input.is_empty() {
            if input.peek(Token![const]) {
                input.parse::<Token![const]>()?;
                let param = input.parse()?;
                attribute.list(List::parse(input, param, true)?)?;
            } else {
                let key: Ident = input.parse()?;
                if input.peek(Token![in]) {
                    attribute.list(List::parse(input, key, false)?)?;
                } else if key == "name" {
                    input.parse::<Token![=]>()?;
                    once(&key, attribute.name.is_some())?;
                    attribute.name = Some(input.parse()?);
                } else if key == "launch" {
                    once(&key, std::mem::replace(&mut has_launch, true))?;
                    let content;
                    parenthesized!(content in input);
                    attribute.launch = content.parse()?;
                } else {
                    return Err(Error::new(key.span(), format!("unknown key `{key}`: the keys are {KEYS}")));
                }
            }
            comma(input)?;
        }
        Ok(attribute)
    }
}

impl Attribute {
    fn list(&mut self, list: List) -> Result<()> {
        once(&list.param, self.lists.iter().any(|l| l.param == list.param))?;
        self.lists.push(list);
        Ok(())
    }
}

impl List {
    fn parse(input: ParseStream, param: Ident, is_const: bool) -> Result<Self> {
        input.parse::<Token![in]>()?;
        let content;
        bracketed!(content in input);
        let mut instances = Vec::new();
        while !content.is_empty() {
            instances.push(Instance::parse(&content, is_const)?);
            comma(&content)?;
        }
        if instances.is_empty() {
            let example = if is_const { "1, 2" } else { "f32, f16" };
            let text =
                format!("`{param}` has no instances: list at least one, such as `{param} in [{example}]`");
            return Err(Error::new(param.span(), text));
        }
        Ok(List { param, is_const, instances })
    }
}

impl Instance {
    fn parse(input: ParseStream, is_const: bool) -> Result<Self> {
        let named = input.peek(Ident) && input.peek2(Token![:]) && !input.peek2(Token![::]);
        let given = if named {
            let name: Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            Some(name.to_string())
        } else {
            None
        };
        if is_const {
            let value: Expr = input.parse()?;
            let own = match &value {
                Expr::Lit(lit) => Some(lit.lit.to_token_stream().to_string()),
                _ => None,
            };
            Instance::new(given, own, value)
        } else {
            let value: Type = input.parse()?;
            let own = match &value {
                Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(Ident::to_string),
                _ => None,
            };
            Instance::new(given, own, value)
        }
    }

    fn new(given: Option<String>, own: Option<String>, value: impl ToTokens) -> Result<Self> {
        match given.or(own) {
            Some(name) => Ok(Instance { name, value: value.to_token_stream() }),
            None => {
                let text = "this instance needs a name, which becomes part of the kernel's: `name: …`";
                Err(Error::new_spanned(value, text))
            }
        }
    }
}

impl Parse for Launch {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut launch = Launch::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            let slot = match key.to_string().as_str() {
                "workgroup" => &mut launch.workgroup,
                "max_workgroup" => &mut launch.max_workgroup,
                "items_per_lane" => &mut launch.items_per_lane,
                "items" => &mut launch.items,
                "rows" => &mut launch.rows,
                "columns" => &mut launch.columns,
                "lds_bytes" => &mut launch.lds_bytes,
                "grid" => {
                    once(&key, launch.grid.is_some())?;
                    launch.grid = Some(grid(input)?);
                    comma(input)?;
                    continue;
                }
                _ => {
                    let text = format!("unknown key `{key}` in `launch`: the keys are {LAUNCH_KEYS}");
                    return Err(Error::new(key.span(), text));
                }
            };
            once(&key, slot.is_some())?;
            *slot = Some(input.parse()?);
            comma(input)?;
        }
        let said = [("items", launch.items.as_ref()), ("rows", launch.rows.as_ref())];
        let said: Vec<_> = said.into_iter().filter_map(|(key, expr)| Some((key, expr?))).collect();
        if let [(first, expr), others @ ..] = &said[..]
            && let Some(second) = others.first().map(|other| other.0).or(launch.grid.as_ref().map(|_| "grid"))
        {
            let text =
                format!("`{first}` and `{second}` both say how many workgroups there are: give one of them");
            return Err(Error::new_spanned(expr, text));
        }
        match &launch.columns {
            Some(columns) if launch.rows.is_none() => {
                Err(Error::new_spanned(columns, "`columns` are those of `rows`, which are not given"))
            }
            _ => Ok(launch),
        }
    }
}

fn grid(input: ParseStream) -> Result<[Expr; 3]> {
    let content;
    let bracket = bracketed!(content in input);
    let mut exprs: Vec<Expr> =
        Punctuated::<Expr, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    if exprs.is_empty() || exprs.len() > 3 {
        return Err(Error::new(
            bracket.span.join(),
            "a grid has one to three dimensions: `grid = [x, y, z]`",
        ));
    }
    exprs.resize_with(3, || syn::parse_quote!(1));
    exprs.try_into().map_err(|_| Error::new(bracket.span.join(), "a grid has three dimensions"))
}

fn once(key: &Ident, again: bool) -> Result<()> {
    if again { Err(Error::new(key.span(), format!("`{key}` is given twice"))) } else { Ok(()) }
}

fn comma(input: ParseStream) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}
