// The floor: the least that any gateway on this runtime must do for one message, and nothing more. A gateway object holds the sockets, a
// session object inserts the message, calls the model, relays its stream, inserts the answer, says it is final. No retries, no queue, no
// validation, no tools: every number of the bench is a ratio to this, measured in the same run on the same machine.
import { DurableObject } from "cloudflare:workers";

export class FloorGateway extends DurableObject {
  async fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketMessage(socket, text) {
    const { id, session, message } = JSON.parse(text);
    socket.serializeAttachment({ session });
    await this.env.SESSION.getByName(session).say(session, message);
    socket.send(JSON.stringify({ type: "res", id, ok: true }));
  }
  publish(session, frame) {
    for (const socket of this.ctx.getWebSockets()) if (socket.deserializeAttachment()?.session === session) socket.send(frame);
  }
}

export class FloorSession extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    this.sql.exec("CREATE TABLE IF NOT EXISTS messages(seq INTEGER PRIMARY KEY, role TEXT NOT NULL, body TEXT NOT NULL) STRICT");
  }
  /** For channels: what comes in is a row before it is answered. */
  take(message) {
    this.sql.exec("INSERT INTO messages(role, body) VALUES ('inbox', ?)", message);
  }
  say(session, message) {
    this.sql.exec("INSERT INTO messages(role, body) VALUES ('user', ?)", message);
    this.ctx.waitUntil(this.answer(session, message));
  }
  async answer(session, message) {
    const gateway = this.env.GATEWAY.getByName("singleton");
    const response = await fetch(`${this.env.MODEL_URL}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "bench", stream: true, messages: [{ role: "user", content: message }] }),
    });
    const decoder = new TextDecoder();
    let buffer = "";
    let answer = "";
    for await (const chunk of response.body) {
      buffer += decoder.decode(chunk, { stream: true });
      let text = "";
      for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
        const data = buffer.slice(6, end);
        buffer = buffer.slice(end + 2);
        if (data !== "[DONE]") text += JSON.parse(data).choices[0]?.delta?.content ?? "";
      }
      if (text === "") continue;
      answer += text;
      void gateway.publish(session, JSON.stringify({ type: "evt", event: "chat", payload: { sessionKey: session, state: "delta", text } }));
    }
    this.sql.exec("INSERT INTO messages(role, body) VALUES ('assistant', ?)", answer);
    await gateway.publish(
      session,
      JSON.stringify({
        type: "evt",
        event: "chat",
        payload: { sessionKey: session, state: "final", message: { role: "assistant", content: [{ type: "text", text: answer }] } },
      }),
    );
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/take") {
      await env.SESSION.getByName("inbox").take(await request.text());
      return new Response("ok");
    }
    return pathname === "/ws" ? env.GATEWAY.getByName("singleton").fetch(request) : new Response("ok");
  },
};
