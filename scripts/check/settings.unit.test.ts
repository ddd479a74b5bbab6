import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cell } from "../../protocol/runtime/cells.ts";
import { lineOfField, settingFindings, settingsOf } from "./settings.ts";

const CELLS: Readonly<Record<string, Cell>> = {
  Root: ["struct", { "jobs?": ["ref", "Jobs" as never], "name?": ["string", 0, 9, null] }],
  Jobs: ["struct", { "most?": ["integer", 0, 9], "list?": ["array", ["ref", "Job" as never], 9] }],
  Job: ["struct", { id: ["string", 0, 9, null] }],
};
const SETTINGS = settingsOf("Root", (type) => CELLS[type] ?? ["json"]);
const READ = ["gateway/src/features/jobs/run.ts"];
const found = (notServed: readonly string[], unread: readonly string[]): string[] =>
  settingFindings(SETTINGS, notServed, ({ path }) => (unread.includes(path) ? [] : READ)).map(({ message }) => message);

describe("[F1] settings and their readers", () => {
  it("every setting is found, through lists and structs", () => {
    assert.deepEqual(
      SETTINGS.map(({ path }) => path),
      ["jobs", "jobs.most", "jobs.list", "jobs.list.*.id", "name"],
    );
  });

  it("a setting without a reader is a finding, unless it is listed as not served", () => {
    assert.deepEqual(found([], ["jobs.most"]), ["Nothing reads jobs.most. Read it, or add it to NOT_SERVED_PATHS."]);
    assert.deepEqual(found(["jobs.most"], ["jobs.most"]), []);
    assert.deepEqual(found(["jobs"], ["jobs", "jobs.most", "jobs.list", "jobs.list.*.id"]), []);
  });

  it("validation, tests and the contract are no readers", () => {
    const files = ["gateway/src/kernel/config/change.ts", "gateway/src/x.unit.test.ts", "gateway/test/x.ts", "protocol/gen/config.ts"];
    assert.equal(settingFindings(SETTINGS, [], () => files).length, SETTINGS.length);
  });

  it("an entry of the list must be a setting, and one that nothing reads", () => {
    assert.deepEqual(found(["jobs.less"], []), ["NOT_SERVED_PATHS names jobs.less, and there is no such setting."]);
    assert.deepEqual(found(["name"], []), ["name is read. Remove it from NOT_SERVED_PATHS."]);
  });

  it("the declaration of a field is found in the generated types", () => {
    const types = "export type Job = {\n  id: string;\n};\nexport type Jobs = {\n  /** At most 9. */\n  most?: number;\n};\n";
    assert.equal(lineOfField(types, { path: "jobs.most", type: "Jobs", field: "most" }), 5);
    assert.equal(lineOfField(types, { path: "x", type: "Job", field: "most" }), undefined);
  });
});
