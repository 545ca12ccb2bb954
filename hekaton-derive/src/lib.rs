//! The derive macro `Slots`, re-exported by `hekaton-circuit`. A procedural macro must be in a crate of its own.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Member, parse_macro_input};

/// Derives `hekaton_circuit::parts::Slots` for a struct with one type parameter, which stands for
/// the content of a slot. Every field is a slot (of that type), or slots: arrays, vectors, tuples, and
/// other structs with this derive.
///
/// ```ignore
/// #[derive(Slots)]
/// struct Pair<W> {
///     index: W,
///     limbs: [W; 4],
/// }
/// ```
#[proc_macro_derive(Slots)]
pub fn derive_slots(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

// Above 60 lines, half of which are the code that it returns.
fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(name, "Slots can be derived for structs only"));
    };
    let one =
        "a struct of slots must have one type parameter, which stands for the content of a slot";
    let mut types = input.generics.type_params();
    let (Some(param), None) = (types.next(), types.next()) else {
        return Err(Error::new_spanned(&input.generics, one));
    };
    if let Some(other) =
        input.generics.params.iter().find(|p| matches!(p, GenericParam::Lifetime(_)))
    {
        return Err(Error::new_spanned(other, one));
    }
    let slot = &param.ident;
    let fields = match &data.fields {
        Fields::Unit => return Err(Error::new_spanned(name, "a struct of slots must have fields")),
        fields => fields,
    };
    let members: Vec<Member> = fields.members().collect();
    let labels: Vec<String> = members
        .iter()
        .map(|member| match member {
            Member::Named(name) => name.to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        })
        .collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    // The shape of a field is found by its position, in the order in which `shape` below lists the fields.
    let positions = 0..members.len();
    let (_, type_generics, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    // Fields implement `Slots` for leaves only, so the derived implementation has the same bound.
    for param in generics.type_params_mut() {
        param.bounds.push(syn::parse_quote!(::hekaton_circuit::parts::Leaf));
    }
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::hekaton_circuit::parts::Slots<#slot> for #name #type_generics
        #where_clause
        {
            fn build(
                shape: &::hekaton_circuit::parts::Shape,
                next: &mut dyn ::core::ops::FnMut() -> #slot,
            ) -> Self {
                Self {
                    #(#members: <#types as ::hekaton_circuit::parts::Slots<#slot>>::build(
                        shape.part(#positions),
                        next,
                    ),)*
                }
            }

            fn visit(&self, see: &mut dyn ::core::ops::FnMut(&#slot)) {
                #(<#types as ::hekaton_circuit::parts::Slots<#slot>>::visit(
                    &self.#members,
                    see,
                );)*
            }

            fn shape(&self) -> ::hekaton_circuit::parts::Shape {
                ::hekaton_circuit::parts::Shape::fields([
                    #((
                        #labels,
                        <#types as ::hekaton_circuit::parts::Slots<#slot>>::shape(&self.#members),
                    ),)*
                ])
            }
        }
    })
}
