/**
 * Builds the model from the registries of `protocol/src/dsl.ts` and checks it for mistakes that the vocabulary can't detect, such
 * as unknown references. Reports all mistakes at once. It must not emit anything or touch a file.
 */
import {
  compare,
  ContractError,
  eachRef,
  type ErrorSpec,
  fieldsOf,
  type LookupSpec,
  type MethodSpec,
  type Model,
  type Registries,
  type ServiceSpec,
  type TypeDef,
} from "./model.ts";
import { toType, TYPE_NAME } from "./read-schema.ts";

const METHOD_NAME = /^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*){0,3}$/;
const LOOKUP_NAME = /^[a-z][A-Za-z]{0,63}$/;
const byName = (left: { readonly name: string }, right: { readonly name: string }): number => compare(left.name, right.name);

function errorProblems(errors: readonly ErrorSpec[]): string[] {
  const problems: string[] = [];
  const codes = new Map<number, string>();
  for (const { reason, code, http, exit, text, hint } of errors) {
    if (!Number.isInteger(code) || code < 1 || code > 65535) problems.push(`error ${reason}: code is 1..65535`);
    if (http < 400 || http > 599) problems.push(`error ${reason}: http is 400..599`);
    if (exit < 1 || exit > 255) problems.push(`error ${reason}: exit is 1..255`);
    if (text.trim() === "") problems.push(`error ${reason}: text is empty`);
    if (hint.trim() === "") problems.push(`error ${reason}: hint is empty`);
    const other = codes.get(code);
    if (other !== undefined) problems.push(`error ${reason}: the code ${code} belongs to ${other}`);
    codes.set(code, reason);
  }
  return problems;
}
function checkAudit({ name, scope, audit, idempotent }: MethodSpec, params: TypeDef | undefined, problems: string[]): void {
  if (typeof audit === "string") {
    if (audit === "none" && scope === "admin" && !idempotent)
      problems.push(`method ${name}: an admin method that changes something is audited`);
  } else if (audit.target !== null && !(params && fieldsOf(params).some((field) => field.name === audit.target)))
    problems.push(`method ${name}: the audit names ${audit.target}, which is not a parameter`);
}
function checkScope({ name, scope, callers }: MethodSpec, problems: string[]): void {
  const isOfCaller = scope === "node" || scope === "channel";
  if (callers.includes("client") ? isOfCaller : callers.some((caller) => caller !== scope))
    problems.push(`method ${name}: the scope is that of its clients, or its only caller`);
}
function checkService({ name, calls }: ServiceSpec, problems: string[], need: (name: string, where: string) => void): void {
  if (!TYPE_NAME.test(name)) problems.push(`service ${name}: PascalCase letters and digits only`);
  for (const call of calls) {
    if (!/^[a-z][A-Za-z]{0,63}$/.test(call.name)) problems.push(`service ${name}: ${call.name} is not a valid name of a call`);
    need(call.result, `service ${name}.${call.name}`);
  }
}
function checkLookup({ name, result, rows, otherwise }: LookupSpec, type: TypeDef | undefined, problems: string[]): void {
  if (!LOOKUP_NAME.test(name)) problems.push(`lookup ${name}: camelCase letters only`);
  if (type?.kind !== "enum") {
    problems.push(`lookup ${name}: there is no enum ${result}`);
    return;
  }
  for (const [key, value] of [...Object.entries(rows), ["otherwise", otherwise] as const])
    if (!type.values.includes(value)) problems.push(`lookup ${name}, ${key}: ${value} is not a value of ${result}`);
}

/** `validated`: types that need a validator although no method or event mentions them. Throws ContractError with every mistake. */
export function buildModel(registries: Registries, validated: readonly string[] = []): Model {
  const problems: string[] = [];
  const types: TypeDef[] = [];
  for (const named of registries.types.values()) {
    try {
      types.push(toType(named));
    } catch (error) {
      if (!(error instanceof ContractError)) throw error;
      problems.push(error.message);
    }
  }
  types.sort(byName);
  const typeByName = new Map(types.map((type) => [type.name, type]));
  const need = (name: string, where: string): void => {
    if (!registries.types.has(name)) problems.push(`${where}: there is no type ${name}`);
  };
  for (const type of types) {
    for (const field of fieldsOf(type)) eachRef(field.node, (name) => need(name, `${type.name}.${field.name}`));
  }
  for (const name of validated) need(name, "VALIDATED");
  for (const method of registries.methods.values()) {
    if (!METHOD_NAME.test(method.name)) problems.push(`method ${method.name}: names are noun.verb`);
    if (method.params !== null) need(method.params, `method ${method.name}`);
    need(method.result, `method ${method.name}`);
    if (method.callers.length === 0) problems.push(`method ${method.name}: it has no callers`);
    for (const reason of method.errors) {
      if (!registries.errors.has(reason)) problems.push(`method ${method.name}: there is no error ${reason}`);
    }
    const params = method.params === null ? undefined : typeByName.get(method.params);
    if (params && params.kind !== "struct" && params.kind !== "tagged") problems.push(`method ${method.name}: params are an object`);
    checkAudit(method, params, problems);
    checkScope(method, problems);
  }
  for (const event of registries.events.values()) {
    if (!METHOD_NAME.test(event.name)) problems.push(`event ${event.name}: names are noun.verb`);
    need(event.payload, `event ${event.name}`);
  }
  for (const service of registries.services?.values() ?? []) checkService(service, problems, need);
  for (const lookup of registries.lookups?.values() ?? []) checkLookup(lookup, typeByName.get(lookup.result), problems);
  problems.push(...errorProblems([...registries.errors.values()]));
  for (const limit of registries.limits.values()) {
    if (!Number.isSafeInteger(limit.value) || limit.value < 0) problems.push(`limit ${limit.name}: a limit is a whole number from 0 up`);
  }
  if (problems.length > 0) throw new ContractError(problems.join("\n"));
  const sorted = <T extends { readonly name: string }>(map: ReadonlyMap<string, T>): T[] => [...map.values()].sort(byName);
  return {
    types,
    typeByName,
    methods: sorted(registries.methods),
    events: sorted(registries.events),
    errors: [...registries.errors.values()].sort((left, right) => compare(left.reason, right.reason)),
    limits: sorted(registries.limits),
    lookups: sorted(registries.lookups ?? new Map<string, LookupSpec>()).map((lookup) => ({
      ...lookup,
      rows: Object.fromEntries(Object.entries(lookup.rows).sort(([left], [right]) => compare(left, right))),
    })),
    services: sorted(registries.services ?? new Map<string, ServiceSpec>()),
  };
}
