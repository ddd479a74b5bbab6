/** What the package `@gsv/node` has of the contract: the names of GSV's tools, and the reasons of errors. */
import { ContractError, type Model } from "./model.ts";
import { BANNER } from "./names.ts";

const CLASSES = "policyClassOf";

export const NODE_PACKAGE_FILE = "crates/gsv-napi/js/gen/contract.ts";

export function emitNodePackage(model: Model): string {
  const classes = model.lookups.find(({ name }) => name === CLASSES);
  if (classes === undefined) throw new ContractError(`the contract has no lookup ${CLASSES}, which names GSV's tools`);
  const tools = Object.keys(classes.rows).map((name) => JSON.stringify(name));
  const reasons = model.errors.map(({ reason }) => `  | ${JSON.stringify(reason)}`).sort();
  return `// ${BANNER}
/** Names of the contract. */

/** The tools of GSV that a node can offer. */
export const RUST_TOOLS = [${tools.join(", ")}] as const;
export type RustTool = (typeof RUST_TOOLS)[number];

/** What programs compare of an error. */
export type ErrorReason =
${reasons.join("\n")};
`;
}
