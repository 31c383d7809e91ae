//! From the attribute and its function to the entries, the records and the checks.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, GenericParam, Ident, ItemFn, Result};

use crate::attribute::{Attribute, Launch};
use crate::formula::{self, Formula, Scope};
use crate::function::{Dims, Function, doc};
use crate::instances::{Combination, combinations};
use crate::{json, structure};

/// The attributes of parameters.
const PARAMETER_KEYS: [&str; 10] =
    ["len", "nullable", "by_row", "layout", "tensors", "along", "value", "requires", "promise", "align"];

/// What a caller must see to, which is what the attributes say; lines of a doc comment.
const SAFETY: [&str; 5] = [
    "",
    " # Safety",
    " Memory is as long, as aligned and as laid out as the attributes of the parameters say, and what they require and",
    " promise holds. A pointer without any has what the kernel accesses. Memory that is written is not used by anything else",
    " meanwhile.",
];

/// Output of the attribute: the function, and everything made from it or the error.
pub(crate) fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut item: ItemFn = match syn::parse2(item.clone()) {
        Ok(item) => item,
        Err(_) => {
            let error = Error::new_spanned(item, "`#[amdgpu_kernel]` is for functions").into_compile_error();
            return quote!(#error);
        }
    };
    let attributes = take_attributes(attribute, &mut item);
    // A call would cost a GPU a stack: two entries that share an instance would else share a function.
    if !item.attrs.iter().any(|a| a.path().is_ident("inline")) {
        item.attrs.push(syn::parse_quote!(#[inline(always)]));
    }
    // The argument list is Candle's.
    item.attrs.push(syn::parse_quote!(#[allow(clippy::too_many_arguments)]));
    let mut plain = item.clone();
    if item.sig.unsafety.is_some() && !doc(&item).contains("# Safety") {
        // As if it stood there: clippy does not read what a macro writes.
        let span = item.sig.ident.span();
        let attribute = |line| -> syn::Attribute { syn::parse_quote_spanned!(span=> #[doc = #line]) };
        plain.attrs.extend(SAFETY.map(attribute));
    }
    for input in &mut plain.sig.inputs {
        let (syn::FnArg::Typed(syn::PatType { attrs, .. })
        | syn::FnArg::Receiver(syn::Receiver { attrs, .. })) = input;
        attrs.retain(|a| !PARAMETER_KEYS.iter().any(|ours| a.path().is_ident(ours)));
    }
    let made = attributes.and_then(|attributes| all(&attributes, &Function::new(item)?));
    let made = made.unwrap_or_else(Error::into_compile_error);
    quote!(#plain #made)
}

/// The attribute that is being expanded, and its siblings on the same function, which it swallows.
fn take_attributes(first: TokenStream, item: &mut ItemFn) -> Result<Vec<Attribute>> {
    let is_ours = |a: &syn::Attribute| a.path().segments.last().is_some_and(|s| s.ident == "amdgpu_kernel");
    let (ours, others) = std::mem::take(&mut item.attrs).into_iter().partition(is_ours);
    item.attrs = others;
    let mut attributes = vec![syn::parse2(first)?];
    let ours: Vec<syn::Attribute> = ours;
    for attribute in ours {
        attributes.push(match &attribute.meta {
            syn::Meta::Path(_) => syn::parse2(TokenStream::new())?,
            _ => attribute.parse_args()?,
        });
    }
    Ok(attributes)
}

fn all(attributes: &[Attribute], function: &Function) -> Result<TokenStream> {
    let mut names = HashSet::new();
    let mut out = TokenStream::new();
    for attribute in attributes {
        for combination in combinations(attribute, function)? {
            if !names.insert(combination.name.clone()) {
                return Err(duplicate(attribute, &combination));
            }
            out.extend(instance(attribute, function, &combination)?);
        }
    }
    Ok(out)
}

fn duplicate(attribute: &Attribute, combination: &Combination) -> Error {
    let params: Vec<_> = combination.generics.iter().map(|(p, ..)| format!("`{{{p}}}`")).collect();
    let span = attribute.name.as_ref().map_or(attribute.span, |n| n.span());
    let name = &combination.name;
    let hint = if params.is_empty() {
        "give each its own `name = \"…\"`".to_owned()
    } else {
        format!("put {} into `name = \"…\"`", params.join(" and "))
    };
    Error::new(span, format!("two instances are named `{name}`: {hint}"))
}

fn instance(attribute: &Attribute, function: &Function, combination: &Combination) -> Result<TokenStream> {
    let generics = generics(combination);
    let arguments = combination.generics.iter().map(|(_, param, i)| match param {
        GenericParam::Const(c) => {
            let name = &c.ident;
            quote!(#name)
        }
        _ => i.value.clone(),
    });
    let callee = &function.item.sig.ident;
    let callee = quote!(#callee::<#(#arguments),*>);
    let checks = checks(attribute, function, &callee);
    let entry = entry(function, combination, &callee);
    let record = record(attribute, function, combination)?;
    Ok(quote! {
        #[allow(unknown_lints, unused, improper_gpu_kernel_arg, non_camel_case_types, non_snake_case, clippy::all)]
        const _: () = {
            #generics
            #checks
            #entry
            #record
        };
    })
}

/// The generic parameters, under their own names, as what they stand for.
fn generics(combination: &Combination) -> TokenStream {
    let items = combination.generics.iter().map(|(_, param, instance)| {
        let value = &instance.value;
        match param {
            GenericParam::Const(c) => {
                let (name, ty) = (&c.ident, &c.ty);
                quote!(const #name: #ty = #value;)
            }
            GenericParam::Type(t) => {
                let name = &t.ident;
                quote!(type #name = #value;)
            }
            GenericParam::Lifetime(_) => TokenStream::new(),
        }
    });
    quote!(#(#items)*)
}

/// What must hold on every target, so that a host build says it too: argument types, bounds, launch numbers.
fn checks(attribute: &Attribute, function: &Function, callee: &TokenStream) -> TokenStream {
    let arguments = function.params.iter().map(|p| {
        let ty = &p.ty;
        quote_spanned!(ty.span()=> ::amdgpu_device::signature::Argument::of::<#ty>();)
    });
    let numbers = numbers(&attribute.launch);
    quote! {
        #numbers
        const _: () = {
            #(#arguments)*
            let _ = #callee;
            assert!(MAX_WORKGROUP >= 1 && MAX_WORKGROUP <= 1024, "`max_workgroup` must be 1 to 1024 lanes");
            let lanes = WORKGROUP[0] * WORKGROUP[1] * WORKGROUP[2];
            assert!(lanes >= 1 && lanes <= MAX_WORKGROUP, "`workgroup` must be 1 to `max_workgroup` lanes");
            assert!(ITEMS_PER_LANE >= 1, "`items_per_lane` must be at least 1");
        };
    }
}

fn numbers(launch: &Launch) -> TokenStream {
    let one: Expr = syn::parse_quote!(1);
    let dimensions = match &launch.workgroup {
        Some(Expr::Array(array)) => {
            let mut dimensions: Vec<_> = array.elems.iter().cloned().collect();
            dimensions.resize_with(3.max(dimensions.len()), || one.clone());
            dimensions
        }
        Some(x) => vec![x.clone(), one.clone(), one.clone()],
        None => vec![
            syn::parse_quote!(if MAX_WORKGROUP < 256 { MAX_WORKGROUP } else { 256 }),
            one.clone(),
            one.clone(),
        ],
    };
    let max = launch.max_workgroup.clone().unwrap_or_else(|| syn::parse_quote!(1024));
    let per_lane = launch.items_per_lane.as_ref().unwrap_or(&one);
    quote! {
        const MAX_WORKGROUP: usize = #max;
        const WORKGROUP: [usize; 3] = [#(#dimensions),*];
        const ITEMS_PER_LANE: usize = #per_lane;
    }
}

fn entry(function: &Function, combination: &Combination, callee: &TokenStream) -> TokenStream {
    let name = &combination.name;
    // Another name in Rust than the function's, which it would hide.
    let entry = format_ident!("kernel_{name}", span = function.item.sig.ident.span());
    // A parameter with the function's name would hide it.
    let unhidden = |name: &Ident| match *name == function.item.sig.ident {
        true => format_ident!("{name}_argument"),
        false => name.clone(),
    };
    let params: Vec<Ident> = function.params.iter().map(|p| unhidden(&p.name)).collect();
    let (types, values): (Vec<_>, Vec<_>) = std::iter::zip(&function.params, &params)
        .map(|(p, name)| {
            let ty = &p.ty;
            match structure::is_plain(ty, combination) {
                true => (quote!(#ty), quote!(#name)),
                false => (
                    quote!(<#ty as ::amdgpu_device::KernelArg>::Passed),
                    quote!(<#ty as ::amdgpu_device::KernelArg>::from_passed(#name)),
                ),
            }
        })
        .unzip();
    quote! {
        #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
        #[unsafe(export_name = #name)]
        pub unsafe extern "gpu-kernel" fn #entry(#(#params: #types),*) {
            unsafe { #callee(#(#values),*) }
        }
    }
}

fn record(attribute: &Attribute, function: &Function, combination: &Combination) -> Result<TokenStream> {
    let launch = &attribute.launch;
    let constants = std::cell::RefCell::new(Vec::new());
    let over = |scope| Formula { function, combination, scope, constants: &constants };
    // What decides how much is launched is computed from the arguments alone, which a launch by name has as well.
    let text = |e: &Expr| over(Scope::Arguments).text(e);
    let bound = |e: &Expr| over(Scope::Launch).text(e);
    let mut lds: Expr = syn::parse_quote!(0);
    let mut lds_formula = None;
    match &launch.lds_bytes {
        Some(e) if formula::mentions_parameter(e, function) => lds_formula = Some(text(e)?),
        Some(e) => lds = e.clone(),
        None => (),
    }
    let items = launch.items.as_ref().map(text).transpose()?;
    let rows = launch.rows.as_ref().map(text).transpose()?;
    let columns = launch.columns.as_ref().map(text).transpose()?;
    let grid = match &launch.grid {
        Some(grid) => Some(json::array(grid.iter().map(text).collect::<Result<Vec<_>>>()?)),
        None => None,
    };
    let args: Vec<_> = function
        .params
        .iter()
        .map(|p| {
            let layout = p.layout.as_ref().map(|l| {
                json::object([
                    ("numel", Some(json::string(&l.numel.to_string()))),
                    ("num_dims", Some(json::string(&l.num_dims.to_string()))),
                    ("of", Some(json::array(l.of.iter().map(|i| json::string(&i.to_string()))))),
                ])
            });
            let tensor = |tensor: &crate::function::Tensor| {
                let (dims, rank) = match &tensor.dims {
                    Dims::Named(names) => {
                        (Some(json::array(names.iter().map(|i| json::string(&i.to_string())))), None)
                    }
                    Dims::Counted(count) => (None, Some(json::string(&count.to_string()))),
                };
                json::object([
                    ("of", Some(json::string(&tensor.of.to_string()))),
                    ("dims", dims),
                    ("rank", rank),
                ])
            };
            let along = p.along.as_ref().map(|along| {
                json::object([
                    ("num_dims", Some(json::string(&along.num_dims.to_string()))),
                    ("of", Some(json::string(&along.of.to_string()))),
                ])
            });
            let conditions = p.requires.iter().map(|e| over(Scope::Launch).condition(e));
            let requires = json::array(conditions.collect::<Result<Vec<_>>>()?);
            Ok(json::object([
                ("name", Some(json::string(&p.name.to_string()))),
                ("nullable", p.nullable.then(|| "true".to_owned())),
                ("by_row", p.by_row.then(|| "true".to_owned())),
                ("len", p.len.as_ref().map(bound).transpose()?),
                ("layout", layout),
                ("tensors", (!p.tensors.is_empty()).then(|| json::array(p.tensors.iter().map(tensor)))),
                ("along", along),
                ("value", p.value.as_ref().map(|e| over(Scope::Tensors).text(e)).transpose()?),
                ("requires", (!p.requires.is_empty()).then_some(requires)),
                ("promise", p.promise.as_ref().map(|text| json::string(&text.value()))),
                ("align", p.align.as_ref().map(|bytes| bytes.base10_digits().to_owned())),
            ]))
        })
        .collect::<Result<_>>()?;
    let json = json::object([
        ("name", Some(json::string(&combination.name))),
        ("doc", Some(json::string(&function.doc))),
        ("args", Some(json::array(args))),
        (
            "launch",
            Some(json::object([
                ("items", items),
                ("rows", rows),
                ("columns", columns),
                ("grid", grid),
                ("lds", lds_formula),
            ])),
        ),
    ]);
    let line = u32::try_from(function.item.sig.ident.span().start().line).unwrap_or(0);
    let symbol = format!("{}.signature", combination.name);
    let types = function.params.iter().map(|p| &p.ty);
    let count = function.params.len();
    let constants = constants.into_inner();
    let known = constants.len();
    let structures = structure::records(function, combination);
    Ok(quote! {
        const LDS_BYTES: usize = #lds;
        const CONSTANTS: [u32; #known] = [#((#constants) as u32),*];
        #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
        const _: () = {
            const FILE: &str = ::core::file!();
            const TEXT: &str = #json;
            // Exported, not `#[used]`: with LTO rustc 1.96 writes an `llvm.used` of the wrong address space.
            #[unsafe(export_name = #symbol)]
            #[cfg_attr(target_arch = "amdgpu", unsafe(link_section = ".amdgpu.kernels"))]
            static RECORD: ::amdgpu_device::signature::Record<#count, #known, { FILE.len() }, { TEXT.len() }> =
                ::amdgpu_device::signature::Record::new(
                    WORKGROUP, MAX_WORKGROUP, ITEMS_PER_LANE, LDS_BYTES, #line,
                    [#(::amdgpu_device::signature::Argument::of::<#types>()),*], CONSTANTS, FILE, TEXT,
                );
        };
        #structures
    })
}
