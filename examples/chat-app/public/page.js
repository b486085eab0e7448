// Draws the chat. Everything that a user or a model wrote becomes text, and never markup.
import { Chat } from "./chat.js";

const byId = (id) => document.getElementById(id);
const [list, input, composer, stop] = ["messages", "input", "composer", "stop"].map(byId);

// The rehearsal model understands these, and a real model does, too.
const suggestions = [
  "describe the gardens of Kyoto in 20 seconds",
  "compare trains and buses",
  "list the sessions",
];

let chat;
/** The message that the composer edits. */
let editing = null;
/** The drawn messages. A message is drawn again when it has changed. */
let drawn = [];

function create(tag, className, text, children = []) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  element.append(...children);
  return element;
}

function createButton(text, label, onClick, isDisabled = chat.isAnswering) {
  const button = create("button", "", text);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.disabled = isDisabled;
  button.addEventListener("click", onClick);
  return button;
}

function drawPart(part) {
  if (part.type === "text") return [create("p", "text", part.text)];
  if (part.type === "reasoning") return [create("p", "text reasoning", part.text)];
  if (!part.type.startsWith("tool-")) return [];
  const name = part.type.slice("tool-".length);
  const result = part.errorText ?? part.output ?? "…";
  const text = typeof result === "string" ? result : JSON.stringify(result, null, 2);
  const call = create("pre", "", `${JSON.stringify(part.input ?? {})}\n\n${text}`);
  return [create("details", "tool", "", [create("summary", "", name), call])];
}

/** ‹ 2/3 ›: selects another edit or another answer. */
function drawBranches({ entryId, alternatives }) {
  const index = alternatives.indexOf(entryId);
  if (alternatives.length < 2) return [];
  const step = (text, label, to) =>
    createButton(
      text,
      label,
      () => chat.select(alternatives[to]),
      chat.isAnswering || alternatives[to] === undefined,
    );
  return [
    create("span", "branches", "", [
      step("‹", "Previous branch", index - 1),
      create("span", "", `${index + 1}/${alternatives.length}`),
      step("›", "Next branch", index + 1),
    ]),
  ];
}

function drawMessage({ id, role, parts, metadata }) {
  const { skein } = metadata ?? {};
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  const action =
    role === "user"
      ? createButton("Edit", "Edit", () => startEdit(id, text))
      : createButton("Regenerate", "Regenerate", () => void chat.regenerate(id));
  const footer = skein === undefined ? [] : [...drawBranches(skein), action];
  return create("article", role, "", [
    ...parts.flatMap(drawPart),
    ...(skein?.error === undefined ? [] : [create("p", "note", skein.error)]),
    create("footer", "", "", footer),
  ]);
}

function draw() {
  const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const { messages, isAnswering, problem } = chat;
  const next = messages.map((message, index) => {
    const text = JSON.stringify([message, isAnswering]);
    const previous = drawn[index];
    if (previous?.text === text) return previous;
    return { text, element: drawMessage(message) };
  });
  for (const [index, { element }] of next.entries()) {
    const previous = list.children[index];
    if (previous === undefined) list.append(element);
    else if (previous !== element) previous.replaceWith(element);
  }
  while (list.children.length > next.length) list.lastElementChild.remove();
  drawn = next;
  byId("problem").textContent = problem;
  byId("suggestions").hidden = messages.length > 0 || isAnswering;
  byId("send").hidden = isAnswering;
  stop.hidden = !isAnswering;
  byId("editing").hidden = editing === null;
  list.setAttribute("aria-busy", String(isAnswering));
  if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
}

function startEdit(messageId, text) {
  editing = messageId;
  input.value = text;
  input.focus();
  draw();
}

function endEdit() {
  editing = null;
  input.value = "";
  draw();
}

async function submit(text) {
  const edited = editing;
  const asked = chat;
  endEdit();
  const isSent = await (edited === null ? chat.send(text) : chat.edit(edited, text));
  // What did not reach the session can be sent again.
  if (!isSent && asked === chat && input.value === "") input.value = text;
}

/** The address contains the chat's ID, so a reload and the back button find it again. */
function openChat() {
  if (location.hash.length < 2) history.replaceState(null, "", `#${crypto.randomUUID()}`);
  const opened = new Chat(location.hash.slice(1), () => {
    if (opened === chat) draw();
  });
  chat = opened;
  endEdit();
  void opened.open();
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  if (input.value.trim() !== "" && !chat.isAnswering) void submit(input.value);
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && editing !== null) endEdit();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});
stop.addEventListener("click", () => void chat.stop());
byId("cancel").addEventListener("click", endEdit);
byId("new").addEventListener("click", () => {
  location.hash = crypto.randomUUID();
});
addEventListener("hashchange", openChat);
openChat();
byId("suggestions").append(
  ...suggestions.map((text) => createButton(text, text, () => void submit(text), false)),
);
