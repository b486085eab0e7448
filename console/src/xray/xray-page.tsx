import { useRef } from "react";
import type { Result } from "skein/client";
import { Link } from "wouter";
import { errorText, useCall } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { sessionPath } from "../paths.ts";
import { Choice } from "../ui/choice.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { Notice } from "../ui/notice.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useQueryFields } from "../ui/query-fields.ts";
import { SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { ChangeList } from "./change-list.tsx";
import { RequestMessages } from "./request-messages.tsx";
import { TokenBar } from "./token-bar.tsx";
import styles from "./xray-page.module.css";

export type Context = Result<"sessions.context">;

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

  const names = [...new Set([model ?? "", ...(models.data?.models ?? []).map(({ model: name }) => name)])];
  const own = entryId === null ? "the session's model" : "the model that answered";
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
            value={model ?? ""}
            options={Object.fromEntries(names.map((name) => [name, name === "" ? own : name]))}
            onChange={(name) => change({ model: name || null }, { replace: true })}
          />
        </>
      }
    >
      <div className={styles.body}>
        <h2 className={styles.title}>
          {entryId === null ? "The next request" : "The request for this answer"}
        </h2>
        {context.error !== null && <Notice text={errorText(context.error)} isError />}
        {context.error === null && context.data === undefined && (
          <Notice text="Building the request…" isBusy />
        )}
        {context.error === null && context.data !== undefined && (
          <div className={styles.columns} aria-busy={context.isPlaceholderData}>
            <div>
              <TokenBar tokens={context.data.tokens} />
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
