import assert from "node:assert/strict";
import { test } from "node:test";
import { actorName, actorText } from "./actor.ts";

test("[AP3] an actor in a sentence is named by its program and the id of its token", () => {
  assert.equal(actorName(actorText("client", "cli-0000477546f02e34", "first-bb019e")), "gsv (token first-bb019e)");
  assert.equal(actorName(actorText("client", "desk", "t1")), "client:desk (token t1)");
  // A client that calls itself like the gateway or like another token stays what it is.
  assert.equal(actorName(actorText("client", "gateway", "t1")), "client:gateway (token t1)");
  assert.equal(actorName(actorText("client", "cli-1 token:first", "t1")), "client:cli-1_token:first (token t1)");
  for (const by of ["gateway", "whatsapp:+4670", "agent:agent:main:cli:dm:main", ""]) assert.equal(actorName(by), by);
});
