/** protocol/gen/openapi.json: the HTTP contract with the types of the model. */
import { openApiDocument } from "../../protocol/src/openapi.ts";
import { pointerRef, typeSchema } from "./json-schema.ts";
import { ContractError, type Model } from "./model.ts";
import { sortKeys } from "./names.ts";

export function emitOpenApi(model: Model): string {
  const document = openApiDocument((name) => {
    const type = model.typeByName.get(name);
    if (type === undefined) throw new ContractError(`the HTTP contract names ${name}, which is not a type of the contract`);
    const schema = typeSchema(type, pointerRef);
    return Object.fromEntries(Object.entries(schema).filter(([key]) => !key.startsWith("x-")));
  });
  return `${JSON.stringify(sortKeys(document), null, 2)}\n`;
}
