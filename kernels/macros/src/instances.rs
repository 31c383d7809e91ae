//! All combinations of the generic parameters' instances, with their names.

use std::collections::HashMap;

use syn::{Error, GenericParam, Result};

use crate::attribute::{Attribute, Instance, List};
use crate::function::Function;

/// One kernel to be: its name, and what each generic parameter stands for, in the function's order.
pub(crate) struct Combination {
    pub name: String,
    pub generics: Vec<(syn::Ident, GenericParam, Instance)>,
}

/// The combinations of one attribute.
pub(crate) fn combinations(attribute: &Attribute, function: &Function) -> Result<Vec<Combination>> {
    let sig = &function.item.sig;
    let params: Vec<_> = sig.generics.params.iter().collect();
    for list in &attribute.lists {
        if !params.iter().any(|p| ident(p) == Some(&list.param)) {
            let text = format!("`{}` has no generic parameter `{}`", sig.ident, list.param);
            return Err(Error::new(list.param.span(), text));
        }
    }
    let mut combinations = vec![Vec::new()];
    for param in params {
        let list = list_of(attribute, param)?;
        combinations = combinations
            .iter()
            .flat_map(|c| {
                list.instances.iter().map(|i| {
                    let mut c = c.clone();
                    c.push((list.param.clone(), param.clone(), i.clone()));
                    c
                })
            })
            .collect();
    }
    combinations
        .into_iter()
        .map(|generics| Ok(Combination { name: name(attribute, function, &generics)?, generics }))
        .collect()
}

fn ident(param: &GenericParam) -> Option<&syn::Ident> {
    match param {
        GenericParam::Type(t) => Some(&t.ident),
        GenericParam::Const(c) => Some(&c.ident),
        GenericParam::Lifetime(_) => None,
    }
}

fn list_of<'a>(attribute: &'a Attribute, param: &GenericParam) -> Result<&'a List> {
    let (ident, is_const) = match param {
        GenericParam::Type(t) => (&t.ident, false),
        GenericParam::Const(c) => (&c.ident, true),
        GenericParam::Lifetime(l) => {
            return Err(Error::new_spanned(l, "a kernel has no lifetime parameters"));
        }
    };
    let example =
        if is_const { format!("const {ident} in [1, 2]") } else { format!("{ident} in [f32, f16]") };
    match attribute.lists.iter().find(|l| l.param == *ident) {
        Some(list) if list.is_const == is_const => Ok(list),
        Some(list) => {
            let what = if is_const { "const" } else { "type" };
            let text = format!("`{ident}` is a {what} parameter: write `{example}`");
            Err(Error::new(list.param.span(), text))
        }
        None => {
            let text = format!(
                "`{ident}` has no instances: say what it stands for, such as `#[amdgpu_kernel({example})]`"
            );
            Err(Error::new(ident.span(), text))
        }
    }
}

/// The attribute's name with `{T}` replaced.
fn name(
    attribute: &Attribute,
    function: &Function,
    generics: &[(syn::Ident, GenericParam, Instance)],
) -> Result<String> {
    let Some(pattern) = &attribute.name else { return Ok(function.item.sig.ident.to_string()) };
    let values: HashMap<_, _> = generics.iter().map(|(p, _, i)| (p.to_string(), i.name.as_str())).collect();
    let text = pattern.value();
    let mut name = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let Some((param, after)) = after.split_once('}') else {
            return Err(Error::new(pattern.span(), "`{` without `}` in the name"));
        };
        let Some(value) = values.get(param) else {
            let text = format!("`{{{param}}}` in the name is not a generic parameter of the function");
            return Err(Error::new(pattern.span(), text));
        };
        name.extend([before, *value]);
        rest = after;
    }
    name.push_str(rest);
    if syn::parse_str::<syn::Ident>(&name).is_err() {
        let text = format!("`{name}` is not an identifier, so it cannot be the name of a kernel");
        return Err(Error::new(pattern.span(), text));
    }
    Ok(name)
}
