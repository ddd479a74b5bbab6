/**
 * The bill of materials of a release, CycloneDX 1.5: what npm has put into the Workers' bundles and what cargo has put into the program, with
 * versions, licences and hashes. Its callers give it the lock file and the output of `cargo metadata`. PURE.
 */
export interface Component {
  readonly type: "library";
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly "bom-ref": string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

interface LockedPackage {
  readonly version?: string;
  readonly name?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}
export interface CargoMetadata {
  readonly packages: readonly {
    readonly id: string;
    readonly name: string;
    readonly version: string;
    readonly license: string | null;
    readonly source: string | null;
  }[];
  readonly resolve: {
    readonly nodes: readonly {
      readonly id: string;
      readonly deps: readonly { readonly pkg: string; readonly dep_kinds: readonly { readonly kind: string | null }[] }[];
    }[];
  };
}

const component = (purl: string, name: string, version: string, license: string | undefined, integrity?: string): Component => {
  const sha512 = /^sha512-(.+)$/.exec(integrity ?? "")?.[1];
  return {
    type: "library",
    name,
    version,
    purl,
    "bom-ref": purl,
    ...(license === undefined ? {} : { licenses: [{ expression: license.replaceAll("/", " OR ") }] }),
    ...(sha512 === undefined ? {} : { hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }] }),
  };
};

/** What the workspaces need at run time, over all levels. Node's rule: the nearest `node_modules` above that has the name. */
export function npmComponents({ packages }: Lock, workspaces: readonly string[]): Component[] {
  const found = new Map<string, Component>();
  const seen = new Set<string>();
  const waiting = [...workspaces];
  const resolve = (from: string, name: string): string | undefined => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) {
      const path = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
      const entry = packages[path];
      if (entry !== undefined) return entry.link === true ? entry.resolved : path;
      if (at === "") return undefined;
    }
  };
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const entry = packages[path];
    if (entry === undefined) throw new Error(`the lock file has no ${path}`);
    const at = path.lastIndexOf("node_modules/");
    const name = entry.name ?? path.slice(at + "node_modules/".length);
    if (at !== -1 && entry.version !== undefined) {
      const purl = `pkg:npm/${name.replace("@", "%40")}@${entry.version}`;
      found.set(purl, component(purl, name, entry.version, entry.license, entry.integrity));
    }
    for (const needed of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      const to = resolve(path, needed);
      // An optional package of another platform is not in the lock file of this one.
      if (to !== undefined) waiting.push(to);
    }
  }
  return sorted(found);
}

/** What is compiled into the program, without what only tests need. */
export function cargoComponents({ packages, resolve }: CargoMetadata, root: string): Component[] {
  const byId = new Map(packages.map((entry) => [entry.id, entry]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const found = new Map<string, Component>();
  const waiting = packages.filter(({ name, source }) => name === root && source === null).map(({ id }) => id);
  if (waiting.length === 0) throw new Error(`cargo knows no package ${root}`);
  const seen = new Set<string>();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    const entry = byId.get(id);
    if (entry !== undefined && entry.source !== null) {
      const purl = `pkg:cargo/${entry.name}@${entry.version}`;
      found.set(purl, component(purl, entry.name, entry.version, entry.license ?? undefined));
    }
    for (const { pkg, dep_kinds: kinds } of nodes.get(id)?.deps ?? []) if (kinds.some(({ kind }) => kind !== "dev")) waiting.push(pkg);
  }
  return sorted(found);
}

const sorted = (found: ReadonlyMap<string, Component>): Component[] =>
  [...found.values()].sort((one, other) => (one.purl < other.purl ? -1 : 1));

export const bom = (version: string, seconds: number, components: readonly Component[]): object => ({
  bomFormat: "CycloneDX",
  specVersion: "1.5",
  version: 1,
  metadata: {
    timestamp: new Date(seconds * 1000).toISOString(),
    component: { type: "application", name: "gsv", version, "bom-ref": `gsv@${version}`, licenses: [{ license: { id: "MIT" } }] },
  },
  components,
});
