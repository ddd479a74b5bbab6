/**
 * Passes tool calls of sessions through the gateway: checks that the session may use the tool, hands the call to its machine, and
 * returns the machine's result to the session. The session keeps the call's record, deadline and outcome.
 */
import { asCallId, type SandboxProfile, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { TOOL_CALL } from "../../ports/audit.ts";
import type { ChangesPort, ChangingCall } from "../../ports/changes.ts";
import type { DispatchOutcome, ToolDispatch } from "../../ports/dispatch.ts";
import { originText } from "../../ports/origin.ts";
import { taintMark } from "../../ports/taint.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import { bareToolName, machineToolName, type ToolAccess } from "../../tools/registry.ts";
import type { NodeDispatch } from "./dispatch.ts";

export interface SessionCallPorts extends Pick<KernelPorts, "background" | "contextVersion" | "now">, ChangesPort {
  readonly dispatch: NodeDispatch;
  readonly sessions: SessionDirectory;
  readonly ask: AskSession;
  readonly audit: Pick<KernelPorts["audit"], "append">;
  readonly sha256: (text: string) => Promise<string>;
  /** What a session may use now, by its key. */
  readonly access: (sessionKey: string) => ToolAccess;
  /** What the machine has reported for its commands. */
  readonly sandboxOf: (nodeId: string) => SandboxProfile | undefined;
  /** A result came for a session's call; the session has not looked at it yet. */
  readonly reported: (nodeId: string, ref: string, result: ToolResultParams) => void;
  /** Resolves when it is known whether a machine that is about to come back did. */
  readonly arrival: (nodeId: string) => Promise<void>;
}

export class SessionCalls {
  readonly #ports: SessionCallPorts;

  constructor(ports: SessionCallPorts) {
    this.#ports = ports;
  }

  /** Checks the access again, because the configuration may have changed after the run got its tools. */
  async dispatch(call: ToolDispatch): Promise<DispatchOutcome> {
    const { callId, sessionKey, nodeId, tool, args, timeoutMs } = call;
    const { isOwners, isOpened } = this.#ports.access(sessionKey);
    const name = machineToolName(nodeId, tool);
    if (!isOwners && !isOpened(name)) {
      await this.#record(call, name, "denied", "tool.guest");
      return "refused";
    }
    await this.#ports.arrival(nodeId);
    if (call.sandbox !== undefined && call.sandbox !== this.#ports.sandboxOf(nodeId)) {
      await this.#record(call, name, "denied", "sandbox.changed");
      return "changed";
    }
    const run = call.runId === undefined ? {} : { runId: call.runId };
    const payload = { callId: asCallId(callId), tool, args: { ...args }, sessionKey, timeoutMs };
    if (!this.#ports.dispatch.handOver(nodeId, callId, timeoutMs, { event: "tool.invoke", payload })) return "offline";
    // The call does not wait for its entry: the frame is on its way.
    this.#ports.background("audit", this.#record(call, name, "allowed", call.rule ?? (isOwners ? "tool.owner" : "tool.opened")));
    // After the frame, which would wait for the record. A gateway that ends between the two, or can't store it, makes the record with the
    // next hand-over or with the result.
    this.#ports.background("changes", this.#changing({ callId, sessionKey, ...run, nodeId, tool }));
    return "sent";
  }

  /** Async, so that a failure is the work's and not the caller's: the call has gone. */
  async #changing(call: Omit<ChangingCall, "at">): Promise<void> {
    this.#ports.changes.called({ ...call, at: this.#ports.now() });
  }

  async #record(call: ToolDispatch, tool: string, decision: "allowed" | "denied", rule: string): Promise<void> {
    const { audit, sha256 } = this.#ports;
    const argsHash = await sha256(JSON.stringify(call.args));
    const origin = call.origin === undefined ? {} : { origin: originText(call.origin) + taintMark(call.taint) };
    const who = { actor: `session:${call.sessionKey}`, ...origin };
    audit.append({ ...who, action: TOOL_CALL, target: tool, tool, decision, rule, detail: call.callId, argsHash });
  }

  /** A machine reports how a call ended. False: no session has the call, and the machine may forget it. */
  async result(nodeId: string, ref: string, result: ToolResultParams): Promise<boolean> {
    const key = this.#ports.sessions.keyOf(ref);
    if (key === undefined) return false;
    // Before the session answers: the node may tell the end of the process at once.
    this.#ports.reported(nodeId, ref, result);
    const { taken, call } = await this.#ports.ask(key, (session) => session.toolResult(nodeId, result, this.#ports.contextVersion()));
    if (call !== undefined) {
      const { runId, name } = call;
      const tool = bareToolName(nodeId, name);
      this.#ports.changes.called({ callId: result.callId, sessionKey: key, runId, nodeId, tool, at: this.#ports.now() });
    }
    // The session has the result only now. After an earlier failure the machine keeps the result and sends it again (W6).
    this.#ports.dispatch.ended(nodeId, result.callId);
    return taken !== "unknown";
  }
}
