//! The function that the attribute stands on: what may be a kernel, and what its parameters say.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, FnArg, GenericParam, ItemFn, LitInt, LitStr, Pat, Result, ReturnType, Token, Type,
    bracketed, parenthesized,
};

/// A function that can be a kernel.
pub(crate) struct Function {
    /// The function without the attributes that are ours.
    pub item: ItemFn,
    pub doc: String,
    pub params: Vec<Param>,
}

/// One parameter.
pub(crate) struct Param {
    pub name: Ident,
    pub ty: Type,
    pub nullable: bool,
    /// Whether the memory has a row for each row of the launch.
    pub by_row: bool,
    pub len: Option<Expr>,
    pub layout: Option<Layout>,
    pub tensors: Vec<Tensor>,
    pub along: Option<Along>,
    /// What the wrapper computes the value from.
    pub value: Option<Expr>,
    pub requires: Vec<Expr>,
    /// What the caller must see to, since nothing checks it.
    pub promise: Option<LitStr>,
    /// The address must be a multiple of this many bytes.
    pub align: Option<LitInt>,
}

/// One of `#[tensors(a[b, c], w[..rank])]`: a pointer, and the names of its dimensions or of the parameter that counts them.
pub(crate) struct Tensor {
    pub of: Ident,
    pub dims: Dims,
}

/// The dimensions of a tensor.
pub(crate) enum Dims {
    /// These.
    Named(Vec<Ident>),
    /// As many as this parameter says.
    Counted(Ident),
}

/// `#[along(num_dims, of(a))]`
pub(crate) struct Along {
    pub num_dims: Ident,
    pub of: Ident,
}

/// `#[layout(numel, num_dims, of(a, b))]`
pub(crate) struct Layout {
    pub numel: Ident,
    pub num_dims: Ident,
    pub of: Vec<Ident>,
}

impl Function {
    /// Checks the function and takes our attributes off its parameters.
    pub(crate) fn new(mut item: ItemFn) -> Result<Self> {
        check_signature(&item)?;
        let mut params = Vec::new();
        for input in &mut item.sig.inputs {
            params.push(Param::new(input)?);
        }
        if item.sig.unsafety.is_none()
            && let Some(p) = params.iter().find(|p| p.is_pointer())
        {
            let text = format!(
                "a kernel that takes a raw pointer trusts its caller: declare it `unsafe fn {}`",
                item.sig.ident
            );
            return Err(Error::new_spanned(&p.ty, text));
        }
        let doc = doc(&item);
        let function = Function { item, doc, params };
        function.check_layouts()?;
        Ok(function)
    }

    pub(crate) fn param(&self, name: &Ident) -> Option<&Param> {
        self.params.iter().find(|p| p.name == *name)
    }

    fn check_layouts(&self) -> Result<()> {
        for (param, layout) in self.params.iter().filter_map(|p| Some((p, p.layout.as_ref()?))) {
            if !param.is_pointer() {
                return Err(Error::new_spanned(&param.ty, "a layout is a pointer: `*const usize`"));
            }
            for name in [&layout.numel, &layout.num_dims] {
                self.named(name, false, "must be an integer parameter")?;
            }
            for name in &layout.of {
                self.named(name, true, "must be a pointer parameter, whose layout this is")?;
            }
        }
        for param in self.params.iter().filter(|p| !p.tensors.is_empty()) {
            if !param.is_pointer() {
                return Err(Error::new_spanned(&param.ty, "sizes and strides are a pointer: `*const usize`"));
            }
            for tensor in &param.tensors {
                self.named(
                    &tensor.of,
                    true,
                    "must be a pointer parameter, whose sizes and strides these are",
                )?;
                match &tensor.dims {
                    Dims::Counted(count) => self.named(count, false, "must be an integer parameter")?,
                    Dims::Named(names) => {
                        if let Some(name) = names.iter().find(|name| self.param(name).is_some()) {
                            let text =
                                format!("`{name}` is a parameter: a dimension needs a name of its own");
                            return Err(Error::new(name.span(), text));
                        }
                    }
                }
            }
        }
        for (param, along) in self.params.iter().filter_map(|p| Some((p, p.along.as_ref()?))) {
            self.named(&along.num_dims, false, "must be an integer parameter")?;
            if !matches!(param.tensors.as_slice(), [tensor] if tensor.of == along.of) {
                let text = format!("`{}` must be the one tensor that this parameter describes", along.of);
                return Err(Error::new(along.of.span(), text));
            }
        }
        Ok(())
    }

    /// Whether some dimensions of the tensor at the pointer `name` are chosen.
    pub(crate) fn has_along(&self, name: &Ident) -> bool {
        self.params.iter().filter_map(|p| p.along.as_ref()).any(|along| along.of == *name)
    }

    /// The tensor that lies at the pointer `name`, where a parameter has its sizes and strides.
    pub(crate) fn tensor(&self, name: &Ident) -> Option<&Tensor> {
        self.params.iter().flat_map(|p| &p.tensors).find(|tensor| tensor.of == *name)
    }

    /// Whether a dimension of a tensor has this name.
    pub(crate) fn is_dimension(&self, name: &Ident) -> bool {
        let mut tensors = self.params.iter().flat_map(|p| &p.tensors);
        tensors.any(|tensor| matches!(&tensor.dims, Dims::Named(names) if names.contains(name)))
    }

    fn named(&self, name: &Ident, pointer: bool, must: &str) -> Result<()> {
        match self.param(name) {
            Some(p) if p.is_pointer() == pointer => Ok(()),
            Some(_) => Err(Error::new(name.span(), format!("`{name}` {must}"))),
            None => Err(self.no_such_param(name)),
        }
    }

    /// The error for an identifier that is not a parameter.
    pub(crate) fn no_such_param(&self, name: &Ident) -> Error {
        let names: Vec<_> = self.params.iter().map(|p| format!("`{}`", p.name)).collect();
        let function = &self.item.sig.ident;
        let text = format!("`{function}` has no parameter `{name}`: its parameters are {}", names.join(", "));
        Error::new(name.span(), text)
    }
}

impl Param {
    fn new(input: &mut FnArg) -> Result<Self> {
        let FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "a kernel is a free function: it has no `self`"));
        };
        let Pat::Ident(pat) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "a kernel's parameter needs a plain name"));
        };
        if let Type::Reference(_)
        | Type::Slice(_)
        | Type::Array(_)
        | Type::Tuple(_)
        | Type::BareFn(_)
        | Type::ImplTrait(_)
        | Type::TraitObject(_) = &*input.ty
        {
            let text = "a kernel takes plain values (such as `u32`, `f32`), structures with `#[derive(KernelArg)]`, and raw \
                        pointers to either";
            return Err(Error::new_spanned(&input.ty, text));
        }
        let mut param = Param {
            name: pat.ident.clone(),
            ty: (*input.ty).clone(),
            nullable: false,
            by_row: false,
            len: None,
            layout: None,
            tensors: Vec::new(),
            along: None,
            value: None,
            requires: Vec::new(),
            promise: None,
            align: None,
        };
        let mut error = None;
        input.attrs.retain(|attr| {
            let result = match attr.path().get_ident().map(Ident::to_string).as_deref() {
                Some("nullable") => attr.meta.require_path_only().map(|_| param.nullable = true),
                Some("by_row") => attr.meta.require_path_only().map(|_| param.by_row = true),
                Some("len") => attr.parse_args().map(|e| param.len = Some(e)),
                Some("layout") => attr.parse_args().map(|l| param.layout = Some(l)),
                Some("tensors") => attr
                    .parse_args_with(Punctuated::<Tensor, Token![,]>::parse_terminated)
                    .map(|tensors| param.tensors.extend(tensors)),
                Some("along") => attr.parse_args().map(|along| param.along = Some(along)),
                Some("value") => attr.parse_args().map(|e| param.value = Some(e)),
                Some("requires") => attr
                    .parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated)
                    .map(|conditions| param.requires.extend(conditions)),
                Some("promise") => attr.parse_args().map(|text| param.promise = Some(text)),
                Some("align") => attr.parse_args().map(|bytes| param.align = Some(bytes)),
                _ => return true,
            };
            error = error.take().or(result.err());
            false
        });
        let of_pointer = param.nullable
            || param.by_row
            || param.len.is_some()
            || param.promise.is_some()
            || param.align.is_some();
        if error.is_none() && of_pointer && !param.is_pointer() {
            let text = "`#[nullable]`, `#[by_row]`, `#[len]`, `#[align]` and `#[promise]` are for pointers";
            error = Some(Error::new_spanned(&param.ty, text));
        }
        if error.is_none() && param.value.is_some() && param.is_pointer() {
            error = Some(Error::new_spanned(&param.ty, "`#[value]` is for integers"));
        }
        match error {
            Some(error) => Err(error),
            None => Ok(param),
        }
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.ty, Type::Ptr(_))
    }
}

impl Parse for Tensor {
    fn parse(input: ParseStream) -> Result<Self> {
        let of = input.parse()?;
        let content;
        bracketed!(content in input);
        if content.peek(Token![..]) {
            content.parse::<Token![..]>()?;
            return Ok(Tensor { of, dims: Dims::Counted(content.parse()?) });
        }
        let names = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?;
        Ok(Tensor { of, dims: Dims::Named(names.into_iter().collect()) })
    }
}

impl Parse for Layout {
    fn parse(input: ParseStream) -> Result<Self> {
        let numel = input.parse()?;
        input.parse::<Token![,]>()?;
        let num_dims = input.parse()?;
        input.parse::<Token![,]>()?;
        let of = pointers(input, "expected `of(…)` with the pointers that the layout describes")?;
        Ok(Layout { numel, num_dims, of })
    }
}

impl Parse for Along {
    fn parse(input: ParseStream) -> Result<Self> {
        let num_dims = input.parse()?;
        input.parse::<Token![,]>()?;
        let text = "expected `of(…)` with the pointer to the tensor whose dimensions these are";
        let span = input.span();
        match <[Ident; 1]>::try_from(pointers(input, text)?) {
            Ok([of]) => Ok(Along { num_dims, of }),
            Err(_) => Err(Error::new(span, text)),
        }
    }
}

/// `of(a, b)`
fn pointers(input: ParseStream, expected: &str) -> Result<Vec<Ident>> {
    let of: Ident = input.parse()?;
    if of != "of" {
        return Err(Error::new(of.span(), expected));
    }
    let content;
    parenthesized!(content in input);
    Ok(Punctuated::<Ident, Token![,]>::parse_terminated(&content)?.into_iter().collect())
}

fn check_signature(item: &ItemFn) -> Result<()> {
    let sig = &item.sig;
    let refuse = |what: &dyn ToTokens, text: &str| Err(Error::new_spanned(what, text));
    if let Some(token) = &sig.asyncness {
        return refuse(token, "a kernel cannot be async");
    }
    if let Some(token) = &sig.constness {
        return refuse(token, "a kernel cannot be const");
    }
    if let Some(abi) = &sig.abi {
        return refuse(abi, "leave out the ABI: the attribute generates the `extern \"gpu-kernel\"` entries");
    }
    if let Some(dots) = &sig.variadic {
        return refuse(dots, "a kernel's parameters are fixed");
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        return refuse(ty, "a kernel returns nothing: it writes its results through pointers");
    }
    for param in &sig.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            return refuse(lifetime, "a kernel has no lifetime parameters: it takes raw pointers");
        }
    }
    Ok(())
}

/// The text of a function's doc comment.
pub(crate) fn doc(item: &ItemFn) -> String {
    doc_of(&item.attrs)
}

/// The text of the doc comment among an item's attributes.
pub(crate) fn doc_of(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| {
        let syn::Meta::NameValue(meta) = &a.meta else { return None };
        let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &meta.value else { return None };
        Some(text.value().trim().to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}
