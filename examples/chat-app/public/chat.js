// A chat over the AI SDK's UI message stream, without React. In a React app, useChat has the same role.

/** The messages of a chat, and the requests that change them. Every change is reported to `onChange`. */
export class Chat {
  messages = [];
  isAnswering = false;
  /** Why the last request failed. */
  problem = "";
  #id;
  #url;
  #onChange;

  constructor(id, onChange) {
    this.#id = id;
    this.#url = `/api/chat/${encodeURIComponent(id)}`;
    this.#onChange = onChange;
  }

  /** Loads the messages, and follows the answer that is being written, if there is one. */
  async open() {
    await this.#follow(async () => {
      // In this order, an answer that ends between the two requests is among the messages.
      const response = await request(`${this.#url}/stream`);
      await this.#load();
      return response;
    });
  }

  /** Returns whether the message reached the session. */
  send(text) {
    const message = userMessage(crypto.randomUUID(), text);
    return this.#ask([...this.messages, message], { trigger: "submit-message" });
  }

  /** Starts a branch with another text in place of the message. */
  edit(messageId, text) {
    const before = this.messages.slice(0, this.#find(messageId));
    return this.#ask([...before, userMessage(messageId, text)], { trigger: "submit-message", messageId });
  }

  /** Starts a branch with another answer. */
  regenerate(messageId) {
    const before = this.messages.slice(0, this.#find(messageId));
    return this.#ask(before, { trigger: "regenerate-message", messageId });
  }

  /** Shows the branch with this entry, one of a message's `metadata.skein.alternatives`. */
  async select(entryId) {
    try {
      this.messages = await (await request(this.#url, { method: "PATCH", body: { entryId } })).json();
      this.problem = "";
    } catch (error) {
      this.problem = error.message;
    }
    this.#onChange();
  }

  /** Stops the answer. Its text is kept. */
  async stop() {
    // It may have ended in the meantime.
    await request(`${this.#url}/stream`, { method: "DELETE" }).catch(() => undefined);
  }

  #find(messageId) {
    return this.messages.findIndex(({ id }) => id === messageId);
  }

  async #load() {
    this.messages = await (await request(this.#url)).json();
  }

  #ask(messages, body) {
    this.messages = messages;
    return this.#follow(() =>
      request("/api/chat", { method: "POST", body: { id: this.#id, messages: messages.slice(-2), ...body } }),
    );
  }

  /** Reads an answer to its end, and then loads the stored messages, which know their branches. */
  async #follow(start) {
    this.isAnswering = true;
    this.problem = "";
    this.#onChange();
    let hasStarted = false;
    try {
      const response = await start();
      hasStarted = true;
      if (response.status !== 204) await this.#readAnswer(response.body);
    } catch (error) {
      this.problem = hasStarted ? "The connection was lost. Reload the page to continue." : error.message;
    }
    await this.#load().catch(() => undefined);
    this.isAnswering = false;
    this.#onChange();
    return hasStarted;
  }

  async #readAnswer(body) {
    let answer = null;
    for await (const chunk of readChunks(body)) {
      if (chunk.type === "start") {
        // The stream begins with the steps that are already stored.
        answer = { id: chunk.messageId, role: "assistant", parts: [] };
        this.messages = [...this.messages.filter(({ id }) => id !== answer.id), answer];
      } else if (chunk.type === "error") this.problem = chunk.errorText;
      else addChunk(answer.parts, chunk);
      this.#onChange();
    }
  }
}

function userMessage(id, text) {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** Throws an error with the server's message if the request is refused. */
async function request(url, { method = "GET", body } = {}) {
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await fetch(url, { method, ...sent });
  if (response.ok) return response;
  const text = await response.text();
  throw new Error(errorMessage(text) || `The server responded with ${response.status}.`);
}

function errorMessage(text) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text;
  }
}

/** Reads server-sent events. Throws if the stream ends before its last event. */
async function* readChunks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The stream ended early.");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "data: [DONE]") return;
      if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length));
    }
  }
}

function addChunk(parts, { type, id, delta, toolCallId, toolName, input, output, errorText }) {
  if (type === "text-start" || type === "reasoning-start")
    parts.push({ type: type.slice(0, -"-start".length), id, text: "" });
  if (type === "text-delta" || type === "reasoning-delta")
    parts.findLast((part) => part.id === id && type.startsWith(part.type)).text += delta;
  if (type === "tool-input-available" || type === "tool-input-error")
    parts.push({ type: `tool-${toolName}`, toolCallId, input, errorText });
  if (type === "tool-output-available" || type === "tool-output-error")
    Object.assign(
      parts.find((part) => part.toolCallId === toolCallId),
      { output, errorText },
    );
}
