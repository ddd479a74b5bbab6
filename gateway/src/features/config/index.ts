/** Reads and changes the configuration. A change applies from the next model call on, because runs compare its version. */
import { succeed } from "../../ports/result.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { CONFIG_TOOLS } from "./tools.ts";

type Ports = Pick<KernelPorts, "config">;

export const configFeature: FeatureDefinition<Ports, object> = {
  name: "config",
  tools: CONFIG_TOOLS,
  create: (ports) => ({ offers: {}, methods: configMethods(ports) }),
};

/** As many as the contract allows. */
const MAX_LISTED = 64;

const configMethods = ({ config }: Ports): Handlers => ({
  "config.get": (_caller, params) => {
    const read = config.read(params.path);
    if (!read.ok) return read;
    const { path, value, notInForce } = read.value;
    const idle = notInForce.length === 0 ? {} : { notInForce: notInForce.slice(0, MAX_LISTED) };
    if (path === undefined) return succeed({ config: value, ...idle });
    return succeed({ path, ...(value === undefined ? {} : { value }), ...idle });
  },
  "config.set": (_caller, params) => {
    const change = config.set(params.path, params.value);
    return change.ok ? succeed({ ok: true, path: change.value.path }) : change;
  },
  "config.unset": (_caller, params) => {
    const change = config.unset(params.path);
    return change.ok ? succeed({ ok: true, path: change.value.path, wasSet: change.value.wasSet }) : change;
  },
});
