/** Reads and changes the configuration. A change applies from the next model call on, because runs compare its version. */
import type { AgentConfig, GsvConfig } from "../../../../protocol/gen/types.ts";
import { loadRegexEngine } from "../../policy/load.ts";
import type { BeforeChange, ConfigWarnings, ConfigWarningsPort } from "../../ports/config-warnings.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { ChangeCheck } from "../../kernel/config/change.ts";
import { recordedPath } from "../../kernel/config/schema.ts";
import type { Replaced } from "../../kernel/config/whole.ts";
import type { Caller, FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { modelLimits } from "../../models/resolve.ts";
import { modelWarning, type WarningPorts } from "../../models/warning.ts";
import { policyCheck } from "./policy-check.ts";
import { missingBindingProblem } from "./missing-binding.ts";
import { CONFIG_TOOLS } from "./tools.ts";
import { unpricedLimits, unusedSettings } from "./unused.ts";

interface Ports extends Pick<KernelPorts, "arm" | "audit" | "config">, NodesPort, PacksPort {
  readonly model: WarningPorts["model"];
  readonly native: NativeTools;
  readonly channelNames: () => readonly string[];
  readonly embedding: { readonly ai: object | undefined };
}

export const configFeature: FeatureDefinition<Ports, ConfigWarningsPort> = {
  name: "config",
  tools: CONFIG_TOOLS,
  create: (ports) => {
    const others: ConfigWarnings[] = [];
    return { offers: { configWarnings: { add: (warnings) => void others.push(warnings) } }, methods: configMethods(ports, others) };
  },
};

/** As many as the contract allows. */
const MAX_LISTED = 64;
/** In the path of every setting of the policy. */
const POLICY = "toolApproval";
/** What is checked against the packs: their own settings, and the ids of agents. */
const OF_PACKS = /packs|agents/;

const listed = (warnings: readonly string[]) => (warnings.length === 0 ? {} : { warnings: warnings.slice(0, MAX_LISTED) });
const set = (path: string, warnings: readonly string[]) => succeed({ ok: true, path, ...listed(warnings) } as const);

const configMethods = (
  { arm, audit, config, model, native, nodes, packs, channelNames, embedding }: Ports,
  others: readonly ConfigWarnings[],
): Handlers => {
  const fitsDeployment: ChangeCheck = both(
    (next, before) => missingBindingProblem(next, before, embedding.ai !== undefined),
    packs.problem,
  );
  const hasPrice = (): boolean => {
    const effective = config.effective();
    return modelLimits(effective.model, effective).price !== undefined;
  };
  const packAgents = (): readonly string[] => config.agents().flatMap(({ id }) => (config.isBundled(id) ? [id] : []));
  const warningsOf = (path: string, now: Readonly<GsvConfig>, before: BeforeChange): readonly string[] => [
    ...unusedSettings(path, now, channelNames()),
    ...unpricedLimits(path, now, config.effective().model, hasPrice()),
    ...packs.missing(path, now),
    ...others.flatMap((warnings) => warnings(path, now, before)),
    ...agentsAt(path, now).flatMap((agent) => {
      const warning = modelWarning({ config, model }, agent.model);
      return warning === undefined ? [] : [`${agent.id}: ${warning}`];
    }),
  ];
  return {
    "config.get": (_caller, params) => {
      const read = config.read(params.path);
      if (!read.ok) return read;
      const { path, value, notInForce } = read.value;
      const lost = config.unreadable().filter((name) => path === undefined || name === path || name.startsWith(`${path}.`));
      const notes = {
        ...(notInForce.length === 0 ? {} : { notInForce: notInForce.slice(0, MAX_LISTED) }),
        ...(lost.length === 0 ? {} : { unreadable: lost.slice(0, MAX_LISTED) }),
      };
      if (path === undefined) return succeed({ config: value, version: config.version(), ...notes });
      return succeed({ path, ...(value === undefined ? {} : { value }), ...notes });
    },
    "config.set": async (_caller, params) => {
      if (!params.path.includes(POLICY)) {
        if (OF_PACKS.test(params.path)) await packs.prepare();
        const before = { packAgents: packAgents() };
        const change = config.set(params.path, params.value, fitsDeployment);
        // Deadlines may follow from settings.
        arm();
        return change.ok ? set(change.value.path, warningsOf(change.value.path, change.value.config, before)) : change;
      }
      const policy = policyCheck(await loadRegexEngine(), native, nodes);
      const change = config.set(params.path, params.value, both(policy.check, fitsDeployment));
      if (!change.ok) return change;
      return set(change.value.path, [...policy.removed(), ...policy.warnings(change.value.config)]);
    },
    "config.unset": async (_caller, params) => {
      if (OF_PACKS.test(params.path)) await packs.prepare();
      const policy = params.path.includes(POLICY) ? policyCheck(await loadRegexEngine(), native, nodes) : undefined;
      const before = { packAgents: packAgents() };
      const change = config.unset(params.path, policy === undefined ? fitsDeployment : both(policy.check, fitsDeployment));
      arm();
      if (!change.ok) return change;
      const { path, wasSet, config: now } = change.value;
      const warnings = wasSet ? [...(policy?.warnings(now) ?? []), ...warningsOf(path, now, before)] : [];
      return succeed({ ok: true, path, wasSet, ...listed(warnings) } as const);
    },
    "config.replace": async (caller, params) => {
      const policy = policyCheck(await loadRegexEngine(), native, nodes);
      if (OF_PACKS.test(JSON.stringify(params.config))) await packs.prepare();
      const before = { packAgents: packAgents() };
      const replaced = config.replace(params.config, params.version, both(policy.check, fitsDeployment));
      audit.append(entryOf(caller, replaced));
      if (!replaced.ok) return replaced;
      arm();
      const { changed, config: now } = replaced.value;
      const warnings = [
        ...(changed.some((path) => path.startsWith(POLICY)) ? [...policy.removed(), ...policy.warnings(now)] : []),
        ...new Set(changed.flatMap((path) => warningsOf(path, now, before))),
      ];
      return succeed({
        ok: true,
        version: config.version(),
        changed: changed.slice(0, MAX_LISTED),
        ...listed(warnings),
      } as const);
    },
  };
};
/** The agents whose models a change of `path` may have changed. */
function agentsAt(path: string, { agents }: Readonly<GsvConfig>): readonly AgentConfig[] {
  const found = /^agents(?:\.list(?:[.[](\d+)\]?(?:\.model(?:\..*)?)?)?)?$/.exec(path);
  const list = agents?.list ?? [];
  return found === null ? [] : list.filter((_agent, index) => found[1] === undefined || index === Number(found[1]));
}
const both =
  (one: ChangeCheck, two: ChangeCheck): ChangeCheck =>
  (next, before) =>
    one(next, before) ?? two(next, before);

/** Paths of settings in one entry of the audit. */
const MAX_RECORDED = 16;
/** Names the settings that were changed, never their values. */
function entryOf({ connection: { principal } }: Caller, replaced: Result<Replaced>) {
  const about = { actor: actorOf(principal), origin: principal.mode, action: "config.replace" };
  if (!replaced.ok) return { ...about, decision: "failed" as const, rule: replaced.error.reason, detail: replaced.error.reason };
  const paths = replaced.value.changed.map(recordedPath);
  const more = paths.length > MAX_RECORDED ? ` and ${paths.length - MAX_RECORDED} more` : "";
  return { ...about, decision: "allowed" as const, target: `${paths.slice(0, MAX_RECORDED).join(", ")}${more}` };
}
