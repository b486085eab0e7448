import type { FormEvent } from "react";
import { useRef } from "react";
import type { Result } from "skein/client";
import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath } from "../paths.ts";
import { Choice } from "../ui/choice.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useQueryFields } from "../ui/query-fields.ts";
import { SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { requestTokens } from "../ui/time.ts";
import { ChangeList } from "./change-list.tsx";
import { RequestMessages } from "./request-messages.tsx";
import { TokenBar } from "./token-bar.tsx";
import styles from "./xray-page.module.css";

export type Context = Result<"sessions.context">;

/** One model for each API. A request can be built for a model that is not configured. */
const wellKnown = [
  "anthropic/claude-sonnet-4-6",
  "google/gemini-3.8-flash",
  "mistral/mistral-large-latest",
  "openai/gpt-5.4",
];

/** `/s/<key>/context?entry=&model=`: what the model saw for an answer, or would see next. */
export default function XrayPage() {
  const place = useRoutePlace();
  const [query, change] = useQueryFields();
  const entryId = query.get("entry");
  const model = query.get("model");
  const models = useCall("models.list", {}, { staleMs: 60_000 });
  const context = useCall(
    "sessions.context",
    {
      ...place,
      wire: true,
      ...(entryId === null ? {} : { entryId }),
      ...(model === null ? {} : { model }),
    },
    { keepsPrevious: true },
  );
  const details = useCall("sessions.get", place, { staleMs: 1000 });
  useRefresh(
    ["sessions.context"],
    ({ event, payload }) =>
      entryId === null &&
      (event === "entry.appended" || event.startsWith("session.")) &&
      "sessionKey" in payload &&
      payload.sessionKey === (details.data?.key ?? place.key),
  );
  const messages = useRef<HTMLDivElement>(null);

  const showMessage = (index: number) =>
    messages.current?.querySelector(`[data-message="${index}"]`)?.scrollIntoView({ block: "center" });

  const own = useOwnModel(place, entryId);
  const configured = (models.data?.models ?? []).map((each) => each.model);
  const others = [...configured, ...wellKnown, model ?? ""].filter(
    (name) => name !== "" && name !== own.model,
  );
  const showModel = (name: string) => change({ model: name || null }, { replace: true });
  return (
    <SessionViewPage
      place={place}
      view="context"
      tools={
        <>
          {entryId !== null && (
            <Link className={styles.back} href={sessionPath(place, "", { entry: entryId })}>
              Go to the answer
            </Link>
          )}
          <Choice
            label="Model"
            value={model === own.model ? "" : (model ?? "")}
            options={{ "": own.model === null ? own.role : `${own.model} (${own.role})` }}
            groups={Object.groupBy([...new Set(others)].sort(), (name) => name.split("/", 1)[0] ?? "")}
            onChange={showModel}
          />
          <ModelForm onShow={showModel} />
        </>
      }
    >
      <div className={styles.body}>
        <h2 className={styles.title}>
          {entryId === null ? "The next request" : "The request for this answer"}
        </h2>
        {context.error !== null && <ErrorNotice error={context.error} />}
        {context.error === null && context.data === undefined && (
          <Notice text="Building the request…" isBusy />
        )}
        {context.error === null && context.data !== undefined && (
          <div className={styles.columns} aria-busy={context.isPlaceholderData}>
            <div>
              <TokenBar tokens={context.data.tokens} counted={model === null ? own.counted : null} />
              <Facts context={context.data} />
              <div ref={messages}>
                <RequestMessages context={context.data} place={place} />
              </div>
            </div>
            <aside className={styles.changes}>
              <ChangeList changes={context.data.changes} onShow={showMessage} />
              {context.data.diagnostics.length > 0 && (
                <>
                  <h2>Diagnostics</h2>
                  <ul>
                    {context.data.diagnostics.map(({ code, note }, index) => (
                      <li key={index}>
                        <code>{code}</code> {oneLine(note, 400)}
                      </li>
                    ))}
                  </ul>
                </>
              )}
              <h2>Wire body</h2>
              <Foldable
                title={`The body of the request to ${context.data.request.provider ?? "the provider"}`}
              >
                <CodeBlock text={JSON.stringify(context.data.wire ?? null, null, 2)} language="json" />
              </Foldable>
            </aside>
          </div>
        )}
      </div>
    </SessionViewPage>
  );
}

/**
 * Returns the model that a request is for unless another one is selected, and how many tokens that model counted for an
 * answer.
 */
function useOwnModel(place: SessionPlace, entryId: string | null) {
  const details = useCall("sessions.get", place, { staleMs: 1000 });
  const page = useCall(
    "sessions.entries",
    { ...place, around: entryId ?? "", limit: 1 },
    { isEnabled: entryId !== null },
  );
  if (entryId === null) return { role: "this session", model: details.data?.model ?? null, counted: null };
  const entry = page.data?.entries.find(({ id }) => id === entryId);
  const answer = entry?.type === "message" && entry.message.role === "assistant" ? entry.message : null;
  const { provider, model, usage } = answer ?? {};
  return {
    role: "gave this answer",
    model: provider === undefined || model === undefined ? null : `${provider}/${model}`,
    counted: usage === undefined ? null : requestTokens(usage),
  };
}

/** Any model, including those that the menu omits. */
function ModelForm({ onShow }: { readonly onShow: (model: string) => void }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const model = String(new FormData(event.currentTarget).get("model")).trim();
    if (model !== "") onShow(model);
    event.currentTarget.reset();
  };
  return (
    <form className={styles.other} onSubmit={submit}>
      or <input name="model" aria-label="Another model" placeholder="provider/model" autoComplete="off" />
    </form>
  );
}

function Facts({ context: { request } }: { readonly context: Context }) {
  return (
    <dl className={styles.facts}>
      <div>
        <dt>Model</dt>
        <dd>{oneLine(`${request.provider ?? "?"}/${request.model ?? "?"}`, 80)}</dd>
      </div>
      <div>
        <dt>API</dt>
        <dd>{request.api ?? "unknown"}</dd>
      </div>
      <div>
        <dt>Thinking</dt>
        <dd>{request.thinkingLevel}</dd>
      </div>
      <div>
        <dt>Messages</dt>
        <dd>{request.messages.length}</dd>
      </div>
    </dl>
  );
}
