/** Emit the Rust of the contract: serde types, `Request` and `Event`, the method, error and limit tables. `codec.rs` and the traits are written by hand. */
import { HIDDEN } from "../../protocol/runtime/secret-shapes.ts";
import type { Arm, EnumDef, Field, Model, Node, StructDef, TaggedDef, TypeDef } from "./model.ts";
import { ContractError, fieldsOf } from "./model.ts";
import { BANNER, isSecretField, pascal, rustDoc, screaming, serdeCamel, snake } from "./names.ts";
import { fieldDoc } from "./typescript.ts";

const KEYWORDS = new Set(
  (
    "abstract as async await become box break const continue do dyn else enum extern false final fn for gen if impl in let loop macro match mod move mut override priv pub ref " +
    "return static struct trait true try type typeof union unsafe unsized use virtual where while yield"
  ).split(" "),
);
const NOT_RAW = new Set(["self", "super", "crate", "Self"]);

const header = (about: string): string => `// ${BANNER}\n//! ${about}\n`;
const str = (text: string): string => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

function fieldName(name: string): string {
  const base = snake(name);
  if (NOT_RAW.has(base)) return `${base}_`;
  return KEYWORDS.has(base) ? `r#${base}` : base;
}

function integer(minimum: number, maximum: number): string {
  if (minimum < 0) return "i64";
  if (maximum <= 0xff) return "u8";
  if (maximum <= 0xffff) return "u16";
  return maximum <= 0xffffffff ? "u32" : "u64";
}

/** A struct or union that contains itself without a list or map in between has no size: those references are boxed. */
function boxedRefs(model: Model): (owner: string, target: string) => boolean {
  const direct = new Map(
    model.types.map((type) => [type.name, fieldsOf(type).flatMap((field) => (field.node.kind === "ref" ? [field.node.name] : []))]),
  );
  const reaches = (from: string, to: string): boolean => {
    const seen = new Set<string>();
    const open = [from];
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (name === to) return true;
      if (seen.has(name)) continue;
      seen.add(name);
      open.push(...(direct.get(name) ?? []));
    }
    return false;
  };
  return (owner, target) => reaches(target, owner);
}

/** Types that hold a float can't be `Eq`. */
function withoutEq(model: Model): Set<string> {
  const inexact = new Set<string>();
  const has = (node: Node): boolean => {
    if (node.kind === "number" || (node.kind === "literal" && typeof node.value === "number" && !Number.isInteger(node.value))) return true;
    if (node.kind === "array") return has(node.items);
    if (node.kind === "map") return has(node.values);
    return node.kind === "ref" && inexact.has(node.name);
  };
  for (let size = -1; size !== inexact.size; ) {
    size = inexact.size;
    for (const type of model.types) if (fieldsOf(type).some((field) => has(field.node))) inexact.add(type.name);
  }
  return inexact;
}

class TypeWriter {
  readonly model: Model;
  readonly isBoxed: (owner: string, target: string) => boolean;
  readonly inexact: Set<string>;
  /** Single-variant enums for string literals outside a tag. */
  readonly literals: { readonly name: string; readonly value: string; readonly owner: string }[] = [];

  constructor(model: Model) {
    this.model = model;
    this.isBoxed = boxedRefs(model);
    this.inexact = withoutEq(model);
  }

  node(node: Node, owner: string, field: string): string {
    switch (node.kind) {
      case "ref":
        return node.name;
      case "string":
        return "String";
      case "integer":
        return integer(node.minimum, node.maximum);
      case "number":
        return "f64";
      case "boolean":
        return "bool";
      case "json":
        return "Value";
      case "literal": {
        if (typeof node.value === "boolean") return "bool";
        if (typeof node.value === "number") return Number.isInteger(node.value) ? integer(node.value, node.value) : "f64";
        const name = `${owner}${pascal(field)}`;
        if (this.model.typeByName.has(name))
          throw new ContractError(`${owner}.${field}: the name ${name} is taken, so the literal has none`);
        if (!this.literals.some((literal) => literal.name === name))
          this.literals.push({ name, value: node.value, owner: `${owner}.${field}` });
        return name;
      }
      case "array":
        return `Vec<${this.node(node.items, owner, field)}>`;
      case "map":
        return node.values.kind === "json" ? "Map<String, Value>" : `BTreeMap<String, ${this.node(node.values, owner, field)}>`;
    }
  }

  field(field: Field, owner: string, root: string, visibility: string): string {
    const name = fieldName(field.name);
    let type = this.node(field.node, owner, field.name);
    if (field.node.kind === "ref" && this.isBoxed(root, field.node.name)) type = `Box<${type}>`;
    const attributes: string[] = [];
    const plain = name.replace(/^r#/, "");
    if (serdeCamel(plain) !== field.name) attributes.push(`rename = ${str(field.name)}`);
    if (!field.required) {
      attributes.push("default", `deserialize_with = "present"`, `skip_serializing_if = "Option::is_none"`);
      type = `Option<${type}>`;
    }
    const serde = attributes.length === 0 ? "" : `#[serde(${attributes.join(", ")})]\n`;
    return `${rustDoc(fieldDoc(field.node))}${serde}${visibility}${name}: ${type},\n`;
  }

  fields(fields: readonly Field[], owner: string, root: string, visibility: string): string {
    const names = new Map<string, string>();
    for (const field of fields) {
      const name = fieldName(field.name);
      const other = names.get(name);
      if (other !== undefined) throw new ContractError(`${owner}: ${field.name} and ${other} have the same name in Rust`);
      names.set(name, field.name);
    }
    return fields.map((field) => this.field(field, owner, root, visibility)).join("");
  }

  derives(type: TypeDef): string {
    const list = [...(hasSecret(type) ? [] : ["Debug"]), "Clone", "PartialEq"];
    if (!this.inexact.has(type.name)) list.push("Eq");
    if (type.kind === "struct" && type.fields.every((field) => !field.required)) list.push("Default");
    return `#[derive(${list.join(", ")}, Serialize, Deserialize)]\n`;
  }

  struct(type: StructDef): string {
    if (type.fields.length === 0) return `${rustDoc(type.doc)}${this.derives(type)}pub struct ${type.name} {}\n`;
    return `${rustDoc(type.doc)}${this.derives(type)}#[serde(rename_all = "camelCase")]\npub struct ${type.name} {\n${this.fields(type.fields, type.name, type.name, "pub ")}}\n${hasSecret(type) ? maskedDebug(type) : ""}`;
  }

  tagged(type: TaggedDef): string {
    if (hasSecret(type)) throw new ContractError(`${type.name}: put the secret field into a struct, whose debug output is masked`);
    const variants = uniqueVariants(
      type.name,
      type.arms.map((arm) => arm.value),
    );
    const arm = ({ value, fields }: Arm): string => {
      const variant = variants.get(value) ?? "";
      const body = fields.length === 0 ? "" : ` {\n${this.fields(fields, `${type.name}${variant}`, type.name, "")}}`;
      return `#[serde(rename = ${str(value)})]\n${variant}${body},\n`;
    };
    return (
      `${rustDoc(type.doc)}${this.derives(type)}#[serde(tag = ${str(type.tag)}, rename_all_fields = "camelCase")]\n` +
      `pub enum ${type.name} {\n${type.arms.map(arm).join("")}}\n${this.sharedFields(type, [...variants.values()])}`
    );
  }

  /** Readers for the fields that every arm has. */
  sharedFields(type: TaggedDef, variants: readonly string[]): string {
    const [first, ...others] = type.arms;
    const shared = (first?.fields ?? []).filter((field) =>
      others.every((arm) => arm.fields.some((other) => JSON.stringify(other) === JSON.stringify(field))),
    );
    const readers = shared.map((field) => {
      const name = fieldName(field.name);
      const target = this.node(field.node, type.name, field.name);
      const arms = variants.map((variant) => `Self::${variant} { ${name}, .. }`).join(" | ");
      const [result, value] = field.required ? [`&${target}`, name] : [`Option<&${target}>`, `${name}.as_ref()`];
      return `${rustDoc(fieldDoc(field.node))}#[must_use]\npub fn ${name}(&self) -> ${result} {\nmatch self { ${arms} => ${value} }\n}\n`;
    });
    return readers.length === 0 ? "" : `\nimpl ${type.name} {\n${readers.join("\n")}}\n`;
  }

  type(type: TypeDef): string {
    switch (type.kind) {
      case "newtype":
        return (
          `${rustDoc(type.doc)}#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]\n#[serde(transparent)]\n` +
          `pub struct ${type.name}(pub String);\nimpl_newtype!(${type.name});\n`
        );
      case "enum":
        return stringEnum(type);
      case "struct":
        return this.struct(type);
      case "tagged":
        return this.tagged(type);
    }
  }
}

const hasSecret = (type: TypeDef): boolean => fieldsOf(type).some((field) => isSecretField(field.name));

/** A `Debug` that says whether a secret is there and never what it is. */
function maskedDebug(type: StructDef): string {
  const fields = type.fields.map((field) => {
    const name = fieldName(field.name);
    const value = isSecretField(field.name) ? `&masked(&self.${name})` : `&self.${name}`;
    return `.field(${str(name.replace(/^r#/, ""))}, ${value})`;
  });
  return `\nimpl std::fmt::Debug for ${type.name} {\nfn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {\nf.debug_struct(${str(type.name)})${fields.join("")}.finish()\n}\n}\n`;
}

function uniqueVariants(owner: string, values: readonly string[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const value of values) {
    const name = pascal(value);
    if ([...names.values()].includes(name)) throw new ContractError(`${owner}: two values are called ${name} in Rust`);
    names.set(value, name);
  }
  return names;
}

function stringEnum(type: Pick<EnumDef, "name" | "doc" | "values">, isDefault = false): string {
  const variants = uniqueVariants(type.name, type.values);
  const list = [...variants]
    .map(([value, variant]) => `${isDefault ? "#[default]\n" : ""}#[serde(rename = ${str(value)})]\n${variant},\n`)
    .join("");
  const arms = [...variants].map(([value, variant]) => `${variant} => ${str(value)}`).join(", ");
  return (
    `${rustDoc(type.doc)}#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ${isDefault ? "Default, " : ""}Serialize, Deserialize)]\n` +
    `pub enum ${type.name} {\n${list}}\nimpl_string_enum!(${type.name} { ${arms} });\n`
  );
}

const TYPE_ALLOWS = `#![allow(
    clippy::doc_markdown,
    clippy::enum_variant_names,
    clippy::large_enum_variant,
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    clippy::too_many_lines,
    rustdoc::all,
    reason = "names, shapes and prose come from the contract"
)]
`;

const METHOD_ALLOWS = `#![allow(
    clippy::doc_markdown,
    clippy::large_enum_variant,
    clippy::too_many_lines,
    rustdoc::all,
    reason = "shapes and prose come from the contract"
)]
`;

const FIND_ERROR = `
impl ErrorReason {
    /// The row of a reason; \`None\` for reasons that a newer peer added.
    #[must_use]
    pub fn find(reason: &str) -> Option<&'static Self> {
        let at = ERRORS.binary_search_by(|row| row.reason.cmp(reason)).ok()?;
        ERRORS.get(at)
    }
}
`;

const METHOD_TRAIT = `
/// One method of the contract.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The answer may come after other frames.
    const DEFERRED: bool;
    /// Sending the same request again, after a lost answer, has no further effect.
    const IDEMPOTENT: bool;
    type Params: Serialize + DeserializeOwned;
    type Result: Serialize + DeserializeOwned;

    /// The request with these params.
    fn request(params: Self::Params) -> Request;
}
`;

const PROSE_ALLOWS = `#![allow(clippy::doc_markdown, rustdoc::all, reason = "prose comes from the contract")]\n`;

export function emitRustTypes(model: Model): string {
  const writer = new TypeWriter(model);
  const bodies = model.types.map((type) => `\n${writer.type(type)}`).join("");
  const literals = [...writer.literals]
    .sort((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ name, value, owner }) => `\n${stringEnum({ name, doc: `The constant \`${owner}\`.`, values: [value] }, true)}`)
    .join("");
  const all = bodies + literals;
  let head = header("Every named type of the wire. Absent fields are `None`, never null; unknown fields are ignored.");
  head += `${TYPE_ALLOWS}\n`;
  if (/\bBTreeMap</.test(all)) head += "use std::collections::BTreeMap;\n\n";
  head += "use serde::{Deserialize, Serialize};\n";
  const json = [...(/\bMap<String, Value>/.test(all) ? ["Map"] : []), ...(/\bValue\b/.test(all) ? ["Value"] : [])];
  if (json.length > 0) head += `use serde_json::{${json.join(", ")}};\n`;
  const helpers = [...(all.includes("masked(") ? ["masked"] : []), ...(all.includes(`"present"`) ? ["present"] : [])];
  if (helpers.length > 0) head += `use crate::present::{${helpers.join(", ")}};\n`;
  return head + all;
}

export function emitRustMethods(model: Model, print: string): string {
  const units = uniqueVariants(
    "methods",
    model.methods.map((method) => method.name),
  );
  const paramsOf = (params: string | null): string => (params === null ? "NoParams" : `types::${params}`);
  const takesNone = model.methods.some((method) => method.params === null);
  let out = header(
    "The methods: one unit struct per method, which binds its params to its result, and [`Request`], a request of any method.",
  );
  out += `${METHOD_ALLOWS}\nuse serde::de::DeserializeOwned;\nuse serde::{Deserialize, Serialize};\n\n${takesNone ? "use crate::no_params::NoParams;\n" : ""}use crate::types;\n`;
  out += `\n/// Same fingerprint, same contract (prose aside). Travels in \`connect\`.\npub const PROTOCOL_FINGERPRINT: &str = ${str(print)};\n`;
  out += `\n/// A request of any method: its name and its params, as they are on the wire.\n#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n#[serde(tag = "method", content = "params")]\npub enum Request {\n`;
  for (const method of model.methods)
    out += `#[serde(rename = ${str(method.name)})]\n${units.get(method.name) ?? ""}(${paramsOf(method.params)}),\n`;
  out +=
    "}\n\nimpl Request {\n/// The method's name on the wire.\n#[must_use]\npub const fn method(&self) -> &'static str {\nmatch self {\n";
  for (const [name, unit] of units) out += `Self::${unit}(_) => ${str(name)},\n`;
  out += "}\n}\n}\n";
  out += METHOD_TRAIT;
  for (const method of model.methods) {
    const unit = units.get(method.name) ?? "";
    out += `\n${rustDoc(method.doc)}#[derive(Debug, Clone, Copy, PartialEq, Eq)]\npub struct ${unit};\n`;
    out += `impl Method for ${unit} {\nconst NAME: &'static str = ${str(method.name)};\nconst DEFERRED: bool = ${method.deferred};\nconst IDEMPOTENT: bool = ${method.idempotent};\n`;
    out += `type Params = ${paramsOf(method.params)};\ntype Result = types::${method.result};\n\n`;
    out += `fn request(params: Self::Params) -> Request {\nRequest::${unit}(params)\n}\n}\n`;
  }
  return out;
}

export function emitRustEvents(model: Model): string {
  const units = uniqueVariants(
    "events",
    model.events.map((event) => event.name),
  );
  for (const reserved of ["Malformed", "Unknown"])
    if ([...units.values()].includes(reserved)) throw new ContractError(`events: the name ${reserved} stands for unreadable events`);
  let out = header("The events: their names, and [`Event`], an event with its payload.");
  out += `${PROSE_ALLOWS}\nuse serde::{Deserialize, Serialize};\n\nuse crate::json::Json;\nuse crate::types;\nuse crate::unread_event::{MalformedEvent, UnknownEvent};\n`;
  out += `\n${stringEnum({ name: "EventName", doc: "The name of an event of the contract.", values: [...units.keys()] })}`;
  out += "\n/// An event as it came in.\n#[derive(Debug, Clone, PartialEq)]\npub enum Event {\n";
  for (const event of model.events) out += `${rustDoc(event.doc)}${units.get(event.name) ?? ""}(Box<types::${event.payload}>),\n`;
  out += "/// The payload does not fit the contract that this program knows.\nMalformed(MalformedEvent<EventName>),\n";
  out += "/// A newer peer knows this event.\nUnknown(UnknownEvent),\n}\n\nimpl Event {\n";
  out +=
    "/// Reads the payload of a known event.\npub(crate) fn read(name: EventName, payload: &Json) -> Result<Self, serde_json::Error> {\nOk(match name {\n";
  for (const unit of units.values()) out += `EventName::${unit} => Self::${unit}(payload.read()?),\n`;
  out += "})\n}\n}\n";
  return out;
}

export function emitRustErrors(model: Model): string {
  const names = uniqueVariants(
    "errors",
    model.errors.map((error) => error.reason),
  );
  const blames = uniqueVariants("blame", [...new Set(model.errors.map((error) => error.blame))].sort());
  let out = header(
    "The one table of errors: what programs compare (`reason`), who is to blame, whether to retry, and two texts for a person: what happened and what to do next.",
  );
  out += `${PROSE_ALLOWS}\nuse crate::error_table::{Blame, ErrorReason};\n`;
  for (const error of model.errors) {
    out += `\n${rustDoc(error.text)}pub const ${screaming(error.reason)}: ErrorReason = ErrorReason {\nreason: ${str(error.reason)},\ncode: ${error.code},\nblame: Blame::${blames.get(error.blame) ?? ""},\n`;
    out += `retryable: ${error.retryable},\nhttp: ${error.http},\nexit: ${error.exit},\ntext: ${str(error.text)},\nhint: ${str(error.hint)},\n};\n`;
  }
  out += `\n/// Every error, sorted by reason.\npub const ERRORS: &[ErrorReason] = &[\n${[...names.keys()].map((reason) => `${screaming(reason)},\n`).join("")}];\n`;
  out += FIND_ERROR;
  return out;
}

/** Decimal digits in groups of three, as clippy wants them. */
const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "_");

export function emitRustLimits(model: Model): string {
  let out = header("The one table of limits; the unit is the last word of the name.");
  out += PROSE_ALLOWS;
  for (const limit of model.limits) out += `\n${rustDoc(limit.doc)}pub const ${screaming(limit.name)}: u64 = ${grouped(limit.value)};\n`;
  return out;
}

export const emitRustHidden = (): string =>
  `${header("The mark for a hidden secret.")}\n${rustDoc("Stands where a secret was, in every text and log.")}pub const HIDDEN: &str = ${str(HIDDEN)};\n`;

/** Which Rust type reads which golden file; only the tests use it. */
export function emitRustGolden(model: Model): string {
  const arms = model.types.map((type) => `${str(type.name)} => round_trip::<types::${type.name}>(text),\n`).join("");
  return (
    `// ${BANNER}\n//! Which Rust type reads which file of protocol/golden.\n#![allow(clippy::too_many_lines, reason = "one arm per type")]\n\n` +
    "use gsv_protocol::types;\nuse serde::Serialize;\nuse serde::de::DeserializeOwned;\nuse serde_json::Value;\n\n" +
    "/// Every type, sorted by name.\npub const TYPE_NAMES: &[&str] = &[\n" +
    model.types.map((type) => `${str(type.name)},\n`).join("") +
    "];\n\n" +
    "fn round_trip<T: Serialize + DeserializeOwned>(text: &str) -> Result<Value, serde_json::Error> {\nserde_json::to_value(serde_json::from_str::<T>(text)?)\n}\n\n" +
    "/// Reads `text` as the named type and writes it again; `None` when there is no such type.\n" +
    `pub fn read(name: &str, text: &str) -> Option<Result<Value, serde_json::Error>> {\nSome(match name {\n${arms}_ => return None,\n})\n}\n`
  );
}
