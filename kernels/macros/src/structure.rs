//! `#[derive(KernelArg)]`, and what the entries of kernels do about structures.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Result, Type};

use crate::function::{Function, doc_of};
use crate::instances::Combination;
use crate::json;

/// Types that a kernel takes as they are.
const PLAIN: [&str; 16] = [
    "bool", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32", "f64", "f16",
    "bf16", "f8e4m3",
];

/// Output of the derive macro.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|item| implementation(&item)).unwrap_or_else(Error::into_compile_error)
}

fn implementation(item: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(item)?;
    let name = &item.ident;
    let path = format!("::{name}");
    let text = text(item, fields);
    let (count, bytes) = (fields.named.len(), text.len());
    let names = fields.named.iter().map(|field| &field.ident);
    let types: Vec<&Type> = fields.named.iter().map(|field| &field.ty).collect();
    let records = names.zip(&types).map(|(name, ty)| {
        quote_spanned!(ty.span()=> ::amdgpu_device::signature::FieldRecord::of::<#ty>(::core::mem::offset_of!(Self, #name)))
    });
    let element = |ty: &&Type| quote_spanned!(ty.span()=> <<#ty as ::amdgpu_device::signature::Field>::Element as ::amdgpu_device::KernelArg>);
    let mut chain = quote!(::amdgpu_device::signature::Nothing);
    let mut inner = quote!(::amdgpu_device::signature::NONE);
    for ty in &types {
        let element = element(ty);
        chain = quote!(::amdgpu_device::signature::Chain<#element::Structures, #chain>);
        inner = quote!(::amdgpu_device::signature::Chain(#element::STRUCTURES, #inner));
    }
    Ok(quote! {
        // SAFETY: laid out as in C, of fields that are plain values themselves
        #[automatically_derived]
        unsafe impl ::amdgpu_device::KernelArg for #name {
            const KIND: u32 = 3;
            const ELEMENT: &'static str = ::amdgpu_device::signature::element(
                &const { ::amdgpu_device::signature::identity(::core::concat!(::core::module_path!(), #path)) },
            );
            type Passed = ::amdgpu_device::signature::ByValue<Self>;
            type Structures =
                ::amdgpu_device::signature::Chain<::amdgpu_device::signature::StructureRecord<#count, #bytes>, #chain>;
            const STRUCTURES: Self::Structures = ::amdgpu_device::signature::Chain(
                ::amdgpu_device::signature::StructureRecord::new::<Self>([#(#records),*], #text),
                #inner,
            );
            #[inline(always)]
            fn from_passed(passed: Self::Passed) -> Self {
                passed.get()
            }
        }

        // Evaluated on every target, so that a host build says what is wrong.
        const _: <#name as ::amdgpu_device::KernelArg>::Structures =
            <#name as ::amdgpu_device::KernelArg>::STRUCTURES;
    })
}

fn fields(item: &DeriveInput) -> Result<&FieldsNamed> {
    let Data::Struct(data) = &item.data else {
        return Err(Error::new_spanned(&item.ident, "a kernel's argument is a `struct`"));
    };
    let Fields::Named(fields) = &data.fields else {
        let text = "a structure that a kernel takes needs names for its fields: the host's has the same";
        return Err(Error::new_spanned(&item.ident, text));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(
            &item.ident,
            "a structure that a kernel takes has at least one field",
        ));
    }
    if let Some(param) = item.generics.params.first() {
        return Err(Error::new_spanned(param, "a structure that a kernel takes has no generic parameters"));
    }
    let mut is_c = false;
    for attribute in item.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            is_c |= meta.path.is_ident("C");
            if meta.path.is_ident("packed") {
                return Err(meta.error("a structure that a kernel takes is not packed"));
            }
            // `align(16)`
            if meta.input.peek(syn::token::Paren) {
                let _number;
                syn::parenthesized!(_number in meta.input);
                _number.parse::<syn::LitInt>()?;
            }
            Ok(())
        })?;
    }
    if !is_c {
        let text = "the host's structure must have the same layout: add `#[repr(C)]`";
        return Err(Error::new_spanned(&item.ident, text));
    }
    Ok(fields)
}

/// The record's text, in whole words.
fn text(item: &DeriveInput, fields: &FieldsNamed) -> String {
    let described = |name: String, attributes| {
        let doc = doc_of(attributes);
        vec![("name", Some(json::string(&name))), ("doc", (!doc.is_empty()).then(|| json::string(&doc)))]
    };
    let named = fields.named.iter().filter_map(|field| {
        let name = field.ident.as_ref()?.to_string();
        Some(json::object(described(name.trim_start_matches("r#").to_owned(), &field.attrs)))
    });
    let mut object = described(item.ident.to_string(), &item.attrs);
    object.push(("fields", Some(json::array(named))));
    let mut text = json::object(object);
    while !text.len().is_multiple_of(4) {
        text.push(' ');
    }
    text
}

/// Whether a type is known to be none that an entry takes in another form: a pointer, or a plain value by its name.
pub(crate) fn is_plain(ty: &Type, combination: &Combination) -> bool {
    match ty {
        Type::Ptr(_) => true,
        _ => has_plain_name(ty, combination),
    }
}

fn has_plain_name(ty: &Type, combination: &Combination) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    let generic = combination.generics.iter().find(|(name, ..)| path.path.is_ident(name));
    if let Some((_, _, instance)) = generic {
        let value = &instance.value;
        return syn::parse2(quote!(#value)).is_ok_and(|ty: Type| has_plain_name(&ty, combination));
    }
    PLAIN.iter().any(|plain| last.ident == plain)
}

/// Statics with the records of the structures among a kernel's parameters, beside its own.
pub(crate) fn records(function: &Function, combination: &Combination) -> TokenStream {
    let statics = function.params.iter().filter_map(|param| {
        let mut pointee = &param.ty;
        while let Type::Ptr(pointer) = pointee {
            pointee = &pointer.elem;
        }
        if has_plain_name(pointee, combination) {
            return None;
        }
        let ty = &param.ty;
        let symbol = format!("{}.{}.structure", combination.name, param.name);
        Some(quote! {
            #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
            const _: () = {
                #[unsafe(export_name = #symbol)]
                #[cfg_attr(target_arch = "amdgpu", unsafe(link_section = ".amdgpu.kernels"))]
                static RECORDS: <#ty as ::amdgpu_device::KernelArg>::Structures =
                    <#ty as ::amdgpu_device::KernelArg>::STRUCTURES;
            };
        })
    });
    quote!(#(#statics)*)
}
