/** Checks the settings of packs (rules PK2, PK5, PK6). PURE. */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { nearest } from "../../../../protocol/runtime/nearest.ts";
import type { PackDefinition, Packs, PackSetting } from "../../packs/pack.ts";
import type { BundledDefinition } from "../../ports/packs.ts";

export interface KnownPacks {
  readonly list: Packs;
  /** The agents of the packs that are loaded, on or off. */
  readonly loaded: ReadonlyMap<string, readonly BundledDefinition[]>;
  /** Ids of the owner's agents by the names in their definitions. */
  readonly ownNames: ReadonlyMap<string, string>;
}
type Config = Readonly<GsvConfig>;

/** The first mistake that the change brings. */
export function packProblem(next: Config, before: Config, known: KnownPacks): string | undefined {
  const was = new Set(problems(before, known));
  return reserved(next, before, known) ?? problems(next, known).find((problem) => !was.has(problem));
}
const idsOf = ({ agents }: Config): readonly string[] => (agents?.list ?? []).map(({ id }) => id);
/** An agent that the change adds, and that a pack has, on or off. A task calls an agent by its name or its id, so both are the pack's. */
function reserved(next: Config, before: Config, { loaded }: KnownPacks): string | undefined {
  const old = new Set(idsOf(before));
  const added = new Set(idsOf(next).filter((id) => !old.has(id)));
  for (const [pack, definitions] of loaded)
    for (const { agentId, definition } of definitions)
      for (const taken of [agentId, definition.metadata.name])
        if (added.has(taken)) return `agents.list: the pack ${pack} has the agent ${taken}. Choose another id.`;
  return undefined;
}
function problems(config: Config, { list, loaded, ownNames }: KnownPacks): readonly string[] {
  const { enabled = [], settings = {}, secrets = {} } = config.packs ?? {};
  const byName = new Map(list.map((pack) => [pack.name, pack]));
  const named = [...enabled, ...Object.keys(settings), ...Object.keys(secrets)].filter((name) => !byName.has(name));
  const ids = new Set(idsOf(config));
  const taken = enabled.flatMap((pack) =>
    (loaded.get(pack) ?? []).flatMap(({ agentId, definition: { metadata } }) => {
      // A task calls an agent without a definition by its id.
      const owner = ownNames.get(metadata.name) ?? (ids.has(metadata.name) ? metadata.name : undefined);
      if (ids.has(agentId))
        return [`The pack ${pack} has an agent ${agentId}, and so have you. Delete yours first: \`gsv agent delete ${agentId}\`.`];
      return owner === undefined
        ? []
        : [`The pack ${pack} has an agent with the name ${metadata.name}, which your agent ${owner} has. Give yours another name first.`];
    }),
  );
  return [
    ...named.map((name) => unknown(name, list)),
    ...Object.entries(settings).flatMap(([name, values]) => valuesProblems(byName.get(name), "settings", values)),
    ...Object.entries(secrets).flatMap(([name, values]) => valuesProblems(byName.get(name), "secrets", values)),
    ...enabled
      .filter((name) => byName.has(name) && !loaded.has(name))
      .map((name) => `The pack ${name} could not be loaded. The log of the gateway says why.`),
    ...taken,
  ];
}
function unknown(name: string, list: Packs): string {
  const names = list.map((pack) => pack.name);
  const meant = nearest(name, names);
  return `There is no pack ${name}.${meant === undefined ? "" : ` Did you mean ${meant}?`} Packs are ${names.join(", ")}.`;
}
function valuesProblems(
  pack: PackDefinition | undefined,
  kind: "settings" | "secrets",
  values: Readonly<Record<string, string>>,
): readonly string[] {
  if (pack === undefined) return [];
  const declared: Readonly<Record<string, PackSetting>> = pack[kind];
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `packs.${kind}.${pack.name}.${name}`;
    if (!Object.hasOwn(declared, name)) {
      const names = Object.keys(declared);
      return [`There is no setting ${path}. The pack has ${names.length === 0 ? "none there" : names.join(", ")}.`];
    }
    const problem = declared[name]?.problem(value);
    return problem === undefined ? [] : [`${path}: ${problem}`];
  });
}
