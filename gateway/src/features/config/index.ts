/** Reads and changes the configuration. A change applies from the next model call on, because runs compare its version. */
import { loadRegexEngine } from "../../policy/load.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { succeed } from "../../ports/result.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { policyCheck } from "./policy-check.ts";
import { CONFIG_TOOLS } from "./tools.ts";
import { unusedSettings } from "./unused.ts";

interface Ports extends Pick<KernelPorts, "config">, NodesPort {
  readonly native: NativeTools;
  readonly channelNames: () => readonly string[];
}

export const configFeature: FeatureDefinition<Ports, object> = {
  name: "config",
  tools: CONFIG_TOOLS,
  create: (ports) => ({ offers: {}, methods: configMethods(ports) }),
};

/** As many as the contract allows. */
const MAX_LISTED = 64;
/** In the path of every setting of the policy. */
const POLICY = "toolApproval";

const set = (path: string, warnings: readonly string[]) =>
  succeed({ ok: true, path, ...(warnings.length === 0 ? {} : { warnings: warnings.slice(0, MAX_LISTED) }) } as const);

const configMethods = ({ config, native, nodes, channelNames }: Ports): Handlers => ({
  "config.get": (_caller, params) => {
    const read = config.read(params.path);
    if (!read.ok) return read;
    const { path, value, notInForce } = read.value;
    const idle = notInForce.length === 0 ? {} : { notInForce: notInForce.slice(0, MAX_LISTED) };
    if (path === undefined) return succeed({ config: value, ...idle });
    return succeed({ path, ...(value === undefined ? {} : { value }), ...idle });
  },
  "config.set": async (_caller, params) => {
    if (!params.path.includes(POLICY)) {
      const change = config.set(params.path, params.value);
      return change.ok ? set(change.value.path, unusedSettings(change.value.path, change.value.config, channelNames())) : change;
    }
    const policy = policyCheck(await loadRegexEngine(), native, nodes);
    const change = config.set(params.path, params.value, policy.check);
    if (!change.ok) return change;
    return set(change.value.path, policy.warnings(change.value.config));
  },
  "config.unset": async (_caller, params) => {
    const policy = params.path.includes(POLICY) ? policyCheck(await loadRegexEngine(), native, nodes) : undefined;
    const change = config.unset(params.path, policy?.check);
    return change.ok ? succeed({ ok: true, path: change.value.path, wasSet: change.value.wasSet }) : change;
  },
});
