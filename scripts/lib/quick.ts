/** Decides what `./scripts/test --quick` runs, from the paths that changed. PURE: takes paths, gives names. */

export interface QuickPlan {
  /** Changed test files that still exist, by the runner that they need. They run first. */
  readonly touched: { readonly node: readonly string[]; readonly workerd: readonly string[] };
  /** Lanes beyond check, unit and sim. */
  readonly lanes: ReadonlySet<"workerd" | "bundles" | "channels" | "clippy" | "rust" | "e2e" | "napi">;
  /** Rust packages whose tests run: the changed ones and those that depend on them. */
  readonly packages: readonly string[];
  /** End-to-end files: the changed ones, and the first message when the product changed. */
  readonly e2e: readonly string[];
}

const IS_TEST = /\.test\.ts$/;
const IS_WORKERD_TEST = /^gateway\/test\/(?!sim\/|models\/).*\.test\.ts$/;
const IS_SLOW_TEST = /\.slow\.test\.ts$/;
/** Documents change no behaviour, so they need no tests. */
const IS_DOCUMENT = /\.md$/;
/** Tests of the package need its addon, so its lane runs them. */
const IN_PACKAGE = /^crates\/gsv-napi\//;
const SMOKE = "test/e2e/first-message.test.ts";

/** Each package with everything that is built on it. */
const DEPENDENTS: Readonly<Record<string, readonly string[]>> = {
  "gsv-protocol": ["gsv-protocol", "gsv-link", "gsv-tools", "gsv-node", "gsv-napi", "gsv"],
  "gsv-link": ["gsv-link", "gsv-node", "gsv-napi", "gsv"],
  "gsv-sandbox": ["gsv-sandbox", "gsv-tools", "gsv-node", "gsv-napi", "gsv"],
  "gsv-tools": ["gsv-tools", "gsv-node", "gsv-napi", "gsv"],
  "gsv-node": ["gsv-node", "gsv-napi", "gsv"],
  "gsv-napi": ["gsv-napi"],
  gsv: ["gsv"],
};

/** `changed`: paths from the root of the repository; `exists` says whether a path is still there. */
export function planOf(changed: readonly string[], exists: (path: string) => boolean): QuickPlan {
  const tests = changed.filter((path) => IS_TEST.test(path) && exists(path));
  const code = changed.filter((path) => !IS_DOCUMENT.test(path) && !IS_TEST.test(path));
  const any = (pattern: RegExp): boolean => code.some((path) => pattern.test(path));

  const contract = any(/^protocol\/(gen|runtime)\//);
  const gateway = contract || any(/^gateway\/(src|packs|wrangler|vitest)/);
  const channels = contract || any(/^channels\//);
  const direct = Object.keys(DEPENDENTS).filter((name) => any(name === "gsv" ? /^cli\// : new RegExp(`^crates/${name}/`)));
  const all = any(/^Cargo\.(toml|lock)$/) ? Object.keys(DEPENDENTS) : direct.flatMap((name) => DEPENDENTS[name] ?? []);
  const packages = Object.keys(DEPENDENTS).filter((name) => all.includes(name));
  const isProduct = gateway || packages.length > 0 || any(/^channels\/[^/]+\/src\//);
  const e2e = new Set(tests.filter((path) => path.startsWith("test/e2e/")));
  if (isProduct || any(/^test\/(e2e|fakes)\//)) e2e.add(SMOKE);

  const lanes: [QuickPlan["lanes"] extends ReadonlySet<infer L> ? L : never, boolean][] = [
    ["workerd", gateway || any(/^gateway\/test\/(?!sim\/|models\/)/)],
    ["bundles", gateway || any(/^channels\/[^/]+\/(src|wrangler)/) || any(/^scripts\/(build|lib\/worker-bundle)/)],
    ["channels", channels],
    ["clippy", packages.length > 0],
    ["rust", packages.length > 0],
    ["e2e", e2e.size > 0],
    ["napi", tests.some((path) => IN_PACKAGE.test(path)) || any(/^crates\/gsv-(?:napi|node)\//)],
  ];
  return {
    touched: {
      node: tests.filter(
        (path) => !IS_WORKERD_TEST.test(path) && !IS_SLOW_TEST.test(path) && !path.startsWith("test/e2e/") && !IN_PACKAGE.test(path),
      ),
      workerd: tests.filter((path) => IS_WORKERD_TEST.test(path)),
    },
    lanes: new Set(lanes.flatMap(([name, runs]) => (runs ? [name] : []))),
    packages,
    e2e: [...e2e],
  };
}
