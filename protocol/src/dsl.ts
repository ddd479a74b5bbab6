/**
 * The vocabulary of the contract. Every schema, method, event, error and limit registers itself here by name, and
 * `scripts/codegen` reads the registries. It must not know a concrete type or method.
 *
 * There is no raw union: serde must distinguish the arms of every union by one string field, so `tagged` is the only union.
 * Readers ignore unknown fields. Optional fields are absent, never null.
 */
import Type, { type TSchema } from "typebox";

export type Kind = "newtype" | "enum" | "struct" | "tagged";
export interface NamedSchema {
  readonly name: string;
  readonly doc: string;
  readonly kind: Kind;
  readonly schema: TSchema;
  /** Only for `tagged`: the discriminating field and its values, in order. */
  readonly tag?: string;
  readonly arms?: readonly string[];
}

/** The mode of an authenticated connection. `admin` tokens connect as client or node. */
export type Caller = "client" | "node" | "channel";
/**
 * What the token of a client must grant. What nodes and channels may call follows from `callers`; a method that no client calls has its
 * caller as its scope.
 */
export type Scope = "read" | "chat" | "operate" | "admin" | "node" | "channel";

/**
 * The audit entry of a call. `none`: no entry (for calls that only read or chat). `{target}`: one entry, which names the
 * value of that parameter (`null`: no parameter). `own`: the handler writes the entry, because the entry names more than a parameter.
 */
export type AuditPolicy<Param extends string = string> = "none" | "own" | { readonly target: Param | null };

export interface MethodSpec {
  readonly name: string;
  readonly doc: string;
  /** Name of the params struct, or null when the method takes none. */
  readonly params: string | null;
  /** Name of the result type. */
  readonly result: string;
  readonly callers: readonly Caller[];
  readonly scope: Scope;
  readonly audit: AuditPolicy;
  /** Error reasons of this method, in addition to those of every method (protocol, auth, internal). */
  readonly errors: readonly string[];
  /** The answer may come after other frames, for example after a tool call on a machine. */
  readonly deferred: boolean;
  /** Sending the same request again, after a lost answer, has no further effect. */
  readonly idempotent: boolean;
}

export interface EventSpec {
  readonly name: string;
  readonly doc: string;
  readonly payload: string;
  readonly to: readonly Caller[];
}

export type Blame = "caller" | "peer" | "policy" | "platform" | "bug";
export interface ErrorSpec {
  /** `noun.problem`; what programs compare. */
  readonly reason: string;
  /** The number on the wire; the published reference client prints it. */
  readonly code: number;
  readonly blame: Blame;
  readonly retryable: boolean;
  readonly http: number;
  /** Exit status of the command line. */
  readonly exit: number;
  /** What happened, in one sentence for a person. */
  readonly text: string;
  /** What to do next, with a command that can be pasted where there is one. */
  readonly hint: string;
}

export interface LimitSpec {
  /** camelCase with the unit last: `frameBytes`, `connectTimeoutMs`. */
  readonly name: string;
  readonly value: number;
  readonly doc: string;
}

export interface CallSpec {
  readonly name: string;
  readonly doc: string;
  readonly params: string;
  /** Name of the result type, and whether a list of it is given. */
  readonly result: string;
  readonly list: boolean;
}
/** Calls that one Worker serves to another over a service binding. Payloads are checked, although both ends are deployed together. */
export interface ServiceSpec {
  readonly name: string;
  readonly doc: string;
  readonly calls: readonly CallSpec[];
}

/** A function from any string to a value of an enum. It is generated in every language and is not on the wire. */
export interface LookupSpec {
  /** camelCase: `policyClassOf`. */
  readonly name: string;
  readonly doc: string;
  /** Name of the enum. */
  readonly result: string;
  readonly rows: Readonly<Record<string, string>>;
  /** The value for every string without a row. */
  readonly otherwise: string;
}

export const types = new Map<string, NamedSchema>();
export const services = new Map<string, ServiceSpec>();
export const methods = new Map<string, MethodSpec>();
export const events = new Map<string, EventSpec>();
export const errors = new Map<string, ErrorSpec>();
export const limits = new Map<string, LimitSpec>();
export const lookups = new Map<string, LookupSpec>();

function register<T>(map: Map<string, T>, what: string, name: string, value: T): void {
  if (map.has(name)) throw new Error(`${what} ${name} is defined twice`);
  map.set(name, value);
}

/** A reference to a registered type, usable wherever a field schema is. */
export type Ref = ReturnType<typeof Type.Ref>;
export const ref = (name: string): Ref => Type.Ref(name);

/** The largest integer that survives JSON in every language we speak. */
export const MAX_SAFE = 9007199254740991;

/** Field schemas. Everything on the wire has a bound; `json` is the only open value and is bounded by the frame. */
export const t = {
  string: (maxLength = 65536, extra: { minLength?: number; pattern?: string; description?: string } = {}): TSchema =>
    Type.String({ maxLength, ...extra }),
  /** Text of any length that fits a frame. */
  text: (): TSchema => Type.String(),
  int: (minimum = 0, maximum = MAX_SAFE): TSchema => Type.Integer({ minimum, maximum }),
  /** Milliseconds since 1970, UTC. */
  time: (): TSchema => Type.Integer({ minimum: 0, maximum: MAX_SAFE, description: "epoch ms" }),
  number: (minimum?: number, maximum?: number): TSchema =>
    Type.Number({ ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) }),
  bool: (): TSchema => Type.Boolean(),
  json: (): TSchema => Type.Unknown(),
  /** An object whose values are free JSON. */
  object: (): TSchema => Type.Record(Type.String(), Type.Unknown()),
  array: (items: TSchema, maxItems = 10000): TSchema => Type.Array(items, { maxItems }),
  map: (values: TSchema): TSchema => Type.Record(Type.String(), values),
  literal: (value: string | number | boolean): TSchema => Type.Literal(value),
  optional: (schema: TSchema): TSchema => Type.Optional(schema),
};
export type Fields = Record<string, TSchema>;

/** A branded string (TypeScript) and a newtype (Rust). */
export function id(name: string, doc: string, opts: { maxLength?: number; pattern?: string } = {}): Ref {
  const schema = Type.String({ minLength: 1, maxLength: opts.maxLength ?? 128, ...(opts.pattern ? { pattern: opts.pattern } : {}) });
  register(types, "type", name, { name, doc, kind: "newtype", schema });
  return ref(name);
}

/** A closed list of strings. */
export function enumOf(name: string, doc: string, values: readonly string[]): Ref {
  register(types, "type", name, { name, doc, kind: "enum", schema: { type: "string", enum: [...values] } as TSchema });
  return ref(name);
}

/** An object. Unknown fields are allowed and ignored, so that an older reader understands a newer writer. */
export function struct(name: string, doc: string, fields: Fields): Ref {
  register(types, "type", name, { name, doc, kind: "struct", schema: Type.Object(fields) });
  return ref(name);
}

/** One of several objects, told apart by the string field `tag`. */
export function tagged(name: string, doc: string, tag: string, arms: Record<string, Fields>): Ref {
  const oneOf = Object.entries(arms).map(([value, fields]) => Type.Object({ [tag]: Type.Literal(value), ...fields }));
  register(types, "type", name, { name, doc, kind: "tagged", tag, arms: Object.keys(arms), schema: Type.Union(oneOf) });
  return ref(name);
}

export interface MethodOptions<Params extends Fields> {
  doc: string;
  /** Inline params: registered as `<Noun><Verb>Params`. Absent = the method takes none. */
  params?: Params | Ref;
  /** Inline result: registered as `<Noun><Verb>Result`; a Ref names an existing type. */
  result: Fields | Ref;
  callers: readonly Caller[];
  scope: Scope;
  audit: AuditPolicy<Extract<keyof Params, string>>;
  errors?: readonly string[];
  deferred?: boolean;
  idempotent?: boolean;
}

const pascal = (name: string): string =>
  name
    .split(/[._]/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("");

const isRef = (value: Fields | Ref): value is Ref => typeof (value as { $ref?: unknown }).$ref === "string";
function nameOf(value: Fields | Ref, name: string, doc: string): string {
  if (isRef(value)) return value.$ref;
  struct(name, doc, value);
  return name;
}

export function method<Params extends Fields = Record<never, never>>(name: string, options: MethodOptions<Params>): void {
  const base = pascal(name);
  register(methods, "method", name, {
    name,
    doc: options.doc,
    params: options.params ? nameOf(options.params, `${base}Params`, `Parameters of \`${name}\`.`) : null,
    result: nameOf(options.result, `${base}Result`, `Result of \`${name}\`.`),
    callers: options.callers,
    scope: options.scope,
    audit: options.audit,
    errors: options.errors ?? [],
    deferred: options.deferred ?? false,
    idempotent: options.idempotent ?? false,
  });
}

/** Inline payload: registered as `<Noun><Verb>Event`. */
export function event(name: string, options: { doc: string; payload: Fields | Ref; to: readonly Caller[] }): void {
  const payload = nameOf(options.payload, `${pascal(name)}Event`, `Payload of the \`${name}\` event.`);
  register(events, "event", name, { name, doc: options.doc, payload, to: options.to });
}

export function error(reason: string, spec: Omit<ErrorSpec, "reason">): void {
  register(errors, "error", reason, { reason, ...spec });
}

export function limit(name: string, value: number, doc: string): void {
  register(limits, "limit", name, { name, value, doc });
}

export function lookup(name: string, spec: Omit<LookupSpec, "name" | "result"> & { readonly result: Ref }): void {
  register(lookups, "lookup", name, { ...spec, name, result: spec.result.$ref });
}

/** Inline params: registered as `<Service><Call>Params`. The result is a type, or a list of one. */
export function service(
  name: string,
  doc: string,
  calls: Readonly<Record<string, { readonly doc: string; readonly params: Fields; readonly result: Ref | TSchema }>>,
): void {
  const specs = Object.entries(calls).map(([call, { doc: what, params, result }]): CallSpec => {
    const paramsName = `${name}${pascal(call)}Params`;
    struct(paramsName, `Parameters of \`${name}.${call}\`.`, params);
    const items = (result as { readonly items?: { readonly $ref?: string } }).items;
    const target = items?.$ref ?? (result as { readonly $ref?: string }).$ref;
    if (target === undefined) throw new Error(`${name}.${call} must give a named type, or a list of one`);
    return { name: call, doc: what, params: paramsName, result: target, list: items !== undefined };
  });
  register(services, "service", name, { name, doc, calls: specs });
}
