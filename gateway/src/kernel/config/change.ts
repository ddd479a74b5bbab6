/** Reads and changes the configuration by path. PURE: takes the settings, returns the new settings or the reason for a refusal. */
import type { GsvConfig, ModelRef } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { checkGsvConfig } from "../../../../protocol/gen/validators/checks.js";
import type { Cell } from "../../../../protocol/runtime/cells.ts";
import { HIDDEN } from "../../../../protocol/runtime/secret-shapes.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { embeddingsProblem } from "../../embeddings/choose.ts";
import { otlpProblem } from "../../telemetry/endpoint.ts";
import { notificationProblems } from "../../notify/places.ts";
import { beatSettings } from "../../schedule/beat.ts";
import { guestToolProblem } from "../../tools/guest-tools.ts";
import { keyCharacterProblem } from "../../models/key-characters.ts";
import { modelProblem, providerProblem } from "../../models/providers.ts";
import { isDemo } from "../../models/resolve.ts";
import { compileLinks } from "../routing/identity-links.ts";
import type { GsvError, Problem } from "../../ports/result.ts";
import { fail } from "../outcome.ts";
import { effective, masked, notInForce, shown } from "./effective.ts";
import { formatPath, parsePath } from "./paths.ts";
import { fit, isSecretPath, locate, notServedAt } from "./schema.ts";
import { getAt, leavesOf, setAt, unsetAt } from "./tree.ts";

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: GsvError };

const badPath = (text: string) =>
  fail(
    "config.unknown_path",
    text.length <= 80 && /^[\w.[\]"-]+$/.test(text) ? `${text} is not a setting.` : "This is not a setting.",
    "A setting is named like model.provider or agents.list[0].id. List the settings: `gsv config get`.",
  );

/** The setting at a path, with the path in canonical form. */
function find(text: string): Outcome<{ readonly segments: readonly string[]; readonly cell: Cell }> {
  const segments = parsePath(text);
  if (segments === undefined) return badPath(text);
  const located = locate(segments);
  return located.ok ? { ok: true, value: { segments, cell: located.cell } } : fail("config.unknown_path", located.problem);
}

/** The effective value at a path, masked; the whole without one. `value` is undefined where a setting has none. */
export interface ConfigReading {
  readonly path?: string;
  readonly value: unknown;
  /** Stored settings at the path or below it that nothing reads. */
  readonly notInForce: readonly string[];
}
export function readPath(set: Readonly<GsvConfig>, path: string | undefined): Outcome<ConfigReading> {
  const all = shown(effective(set));
  const idle = notInForce(set);
  if (path === undefined || path.trim() === "") return { ok: true, value: { value: all, notInForce: idle.map(formatPath) } };
  const found = find(path);
  if (!found.ok) return found;
  const { segments } = found.value;
  const own = notServedAt(segments);
  const here = own === undefined ? idle.filter((setting) => segments.every((name, at) => name === setting[at])) : [own];
  const value = getAt(own === undefined ? all : masked(set), segments);
  return { ok: true, value: { path: formatPath(segments), value, notInForce: value === undefined ? [] : here.map(formatPath) } };
}

export interface Change {
  readonly path: string;
  readonly config: GsvConfig;
  readonly changed: boolean;
}

/** A caller's own check of the next settings beyond the schema. Returns the problem as a sentence. */
export type ChangeCheck = (next: Readonly<GsvConfig>, before: Readonly<GsvConfig>) => string | undefined;
export const NO_CHECK: ChangeCheck = () => undefined;

export function setPath(set: Readonly<GsvConfig>, path: string, value: unknown, check = NO_CHECK): Outcome<Change> {
  const found = find(path);
  if (!found.ok) return found;
  const { segments, cell } = found.value;
  const name = formatPath(segments);
  const fitted = fit(cell, value, segments);
  if (!fitted.ok && fitted.kind === "unknown") return fail("config.unknown_path", fitted.problem);
  if (!fitted.ok && value === null) return fail("config.invalid", fitted.problem, `To remove the setting: \`gsv config unset ${name}\`.`);
  if (!fitted.ok) return fail("config.invalid", fitted.problem, `Show the current value for comparison: \`gsv config get ${name}\`.`);
  const idle = broughtIdle(set, segments, fitted.value);
  if (idle !== undefined)
    return fail("config.not_served", `This version of GSV does not use ${formatPath(idle)}, so it was not stored.`, IDLE_HINT);
  const kept = keepMasked(set, segments, fitted.value);
  if (!kept.ok) return kept;
  const next = setAt(set, segments, kept.value, emptyAt);
  if (next === undefined) return fail("config.invalid", `${name} would leave a gap in a list.`, "Use the position after the last item.");
  return settle(set, next, name, check);
}

export const IDLE_HINT = "Show the settings that are in force: `gsv config get`.";
/** A setting that nothing reads, and that the value would bring or change. An editor may send back what it was shown. */
export function broughtIdle(set: Readonly<GsvConfig>, at: readonly string[], value: unknown): readonly string[] | undefined {
  for (const [below, leaf] of leavesOf(value)) {
    const path = [...at, ...below];
    const idle = notServedAt(path);
    if (idle !== undefined && JSON.stringify(getAt(set, path)) !== JSON.stringify(leaf)) return idle;
  }
  return undefined;
}

export const emptyAt = (path: readonly string[]): unknown => {
  const located = locate(path);
  return located.ok && located.cell[0] === "array" ? [] : {};
};

/** What a client sends back for a secret that it was shown: the mark of today, and that of earlier versions. */
const MASKS: ReadonlySet<unknown> = new Set([HIDDEN, "********"]);

/** Replaces a mask by the stored secret: an editor that showed the whole configuration sends the mask back. */
export function keepMasked(set: Readonly<GsvConfig>, at: readonly string[], value: unknown): Outcome<unknown> {
  let whole = value;
  for (const [below, leaf] of leavesOf(value)) {
    const path = [...at, ...below];
    if (!MASKS.has(leaf) || !isSecretPath(path)) continue;
    const present = getAt(set, path);
    if (typeof present !== "string")
      return fail("config.invalid", `${formatPath(path)} is only a mask, and no secret is stored there.`, "Give the secret itself.");
    whole = setAt(whole, below, present, emptyAt);
  }
  return { ok: true, value: whole };
}

export function unsetPath(set: Readonly<GsvConfig>, path: string, check = NO_CHECK): Outcome<Change & { readonly wasSet: boolean }> {
  const found = find(path);
  if (!found.ok) return found;
  const { segments } = found.value;
  const name = formatPath(segments);
  if (getAt(set, segments) === undefined) return { ok: true, value: { path: name, config: set, changed: false, wasSet: false } };
  const settled = settle(set, unsetAt(set, segments) ?? {}, name, check);
  return settled.ok ? { ok: true, value: { ...settled.value, wasSet: true } } : settled;
}

/** Checks the size and the rules that the schema does not contain. */
export function settle(before: Readonly<GsvConfig>, next: unknown, path: string, check: ChangeCheck): Outcome<Change> {
  if (!checkGsvConfig(next)) return fail("config.invalid", `This change of ${path} would remove a setting that the configuration needs.`);
  const problem =
    contradiction(next) ??
    deadLink(before, next) ??
    badProvider(before, next) ??
    badHeartbeat(before, next) ??
    badNotifications(before, next) ??
    badEmbeddings(before, next) ??
    badTelemetry(before, next) ??
    check(next, before);
  // Several settings, or all, are no path.
  const look = /[\s,]/.test(path) ? undefined : `Show the current value for comparison: \`gsv config get ${path}\`.`;
  if (typeof problem === "string") return fail("config.invalid", problem, look);
  if (problem !== undefined) return fail("config.invalid", problem.message, problem.hint);
  const text = JSON.stringify(next);
  if (utf8Bytes(text) > LIMITS.configBytes)
    return fail("config.too_large", `The configuration would become larger than ${LIMITS.configBytes} bytes.`);
  return { ok: true, value: { path, config: next, changed: text !== JSON.stringify(before) } };
}

function contradiction(config: Readonly<GsvConfig>): string | undefined {
  const zone = config.userTimezone;
  if (zone !== undefined && !isTimezone(zone)) return `${zone} is not a time zone; name one such as Europe/Berlin or UTC.`;
  const ids = (config.agents?.list ?? []).map((agent) => agent.id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) return `There are two agents with the id ${twice}.`;
  return Object.entries(config.channels ?? {}).flatMap(([name, { guestTools = [] }]) =>
    guestTools.flatMap((pattern) => {
      const problem = guestToolProblem(pattern);
      return problem === undefined ? [] : [`channels.${name}.guestTools: ${problem}`];
    }),
  )[0];
}

/** A link that matches no one, unless it was set before: it must not block other changes. */
function deadLink(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const was = new Set(compileLinks(before.session?.identityLinks).problems);
  return compileLinks(next.session?.identityLinks).problems.find((problem) => !was.has(problem));
}

/** A heartbeat that cannot be followed, unless it was set before. */
function badHeartbeat(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const was = new Set(heartbeatProblems(before));
  return heartbeatProblems(next).find((problem) => !was.has(problem));
}
function heartbeatProblems({ agents, userTimezone = "UTC" }: Readonly<GsvConfig>): readonly string[] {
  return [undefined, ...(agents?.list ?? [])].flatMap((agent) => {
    const read = beatSettings(agent?.heartbeat, agents?.defaultHeartbeat, userTimezone);
    return read.ok ? [] : [`${agent === undefined ? "agents.defaultHeartbeat" : `The heartbeat of ${agent.id}`}: ${read.error.message}`];
  });
}

/** A place of notifications that does not exist, or quiet hours that cannot be, unless they were set before. */
function badNotifications(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const was = new Set(notificationProblems(before));
  return notificationProblems(next).find((problem) => !was.has(problem));
}

/** An embedding service that cannot be used, unless it was set before. */
function badEmbeddings(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const problem = embeddingsProblem(next.memory?.embeddings);
  return problem === embeddingsProblem(before.memory?.embeddings) ? undefined : problem;
}

/** A collector that cannot be used, unless it was set before. */
function badTelemetry(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const problem = otlpProblem(next.telemetry?.otlp);
  return problem === otlpProblem(before.telemetry?.otlp) ? undefined : problem;
}

/** Models by the path of the setting that names them. */
const modelsOf = ({
  model,
  agents,
  compaction,
}: Readonly<GsvConfig>): readonly (readonly [path: string, model: Partial<ModelRef> | undefined])[] => [
  ["model", model],
  ...(model?.fallbacks ?? []).map((chosen, index) => [`model.fallbacks[${index}]`, chosen] as const),
  ...Object.entries(model?.tiers ?? {}).map(([tier, chosen]) => [`model.tiers.${tier}`, chosen] as const),
  ...(agents?.list ?? []).map(({ model: own }, index) => [`agents.list[${index}].model`, own] as const),
  ["compaction.model", compaction?.model],
];
/** A provider, a model of the demo or a key's name that cannot be used, and an empty key. What was stored before blocks no other change. */
function badProvider(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): Problem | undefined {
  const at = (path: string, { message, hint }: Problem): Problem => ({
    message: `${path}: ${message}`,
    ...(hint === undefined ? {} : { hint }),
  });
  const stored = modelsOf(before).map(([, model]) => model);
  for (const [path, { provider, id } = {}] of modelsOf(next)) {
    if (provider === undefined) continue;
    const problem = stored.some((model) => model?.provider === provider) ? undefined : providerProblem(provider, next);
    if (problem !== undefined) return at(`${path}.provider`, problem);
    // After a change of the provider alone, the id is that of the model before: the demo ignores it.
    if (id === undefined || stored.some((model) => model?.id === id)) continue;
    const other = isDemo({ provider, id }) ? modelProblem({ provider, id }, next) : undefined;
    if (other !== undefined) return at(`${path}.id`, other);
  }
  for (const [name, key] of Object.entries(next.apiKeys ?? {})) {
    const path = formatPath(["apiKeys", name]);
    if (before.apiKeys !== undefined && Object.hasOwn(before.apiKeys, name) && before.apiKeys[name] === key) continue;
    if (key.trim() === "")
      return at(path, { message: "the key is empty.", hint: `Give the key itself, or remove it: \`gsv config unset ${path}\`.` });
    const characters = keyCharacterProblem(key);
    if (characters !== undefined) return at(path, characters);
    const problem = before.apiKeys !== undefined && Object.hasOwn(before.apiKeys, name) ? undefined : providerProblem(name, next);
    if (problem !== undefined) return at(path, problem);
  }
  return undefined;
}

function isTimezone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
