import type { FormEvent } from "react";
import { useState } from "react";
import { errorText, useChange, useMay, useOffline } from "../connect/gateway.tsx";
import { roleWord } from "../session/rows.ts";
import buttons from "../ui/button.module.css";
import { isInputMethod, Kbd, useKeys } from "../ui/keys.tsx";
import { useRoutePlace } from "../ui/session-head.tsx";
import { fullTime } from "../ui/time.ts";
import styles from "./entry-bar.module.css";
import type { Tree, TreeNode } from "./tree-model.ts";
import { pathTo, previewOf, roleOf, siblingsOf } from "./tree-model.ts";

interface EntryBarProps {
  readonly node: TreeNode;
  readonly tree: Tree;
  readonly onRead: () => void;
  readonly onCompare: (() => void) | null;
  readonly onContinue: (() => void) | null;
  readonly onLabeled: () => void;
}

/** The list's current entry with its actions. */
export function EntryBar({ node, tree, onRead, onCompare, onContinue, onLabeled }: EntryBarProps) {
  const { entry, isActive, position } = node;
  const count = siblingsOf(node, tree).length;
  const [isLabeling, setIsLabeling] = useState(false);
  const mayLabel = useMay("sessions.label");
  const offline = useOffline();
  useKeys({ l: mayLabel && !isLabeling ? () => setIsLabeling(true) : null });
  return (
    <footer className={styles.bar}>
      <div className={styles.about}>
        <p className={styles.facts}>
          <span className={styles.role}>{roleWord(roleOf(node))}</span>
          <span>{fullTime(Date.parse(entry.timestamp))}</span>
          <span>entry {pathTo(node).length.toLocaleString("en")} on this branch</span>
          {count > 1 && (
            <span>
              branch {position} of {count}
            </span>
          )}
          <span>{isActive ? "active" : "inactive"}</span>
        </p>
        <p className={styles.preview} dir="auto">
          {previewOf(node, 240) || "(empty)"}
        </p>
      </div>
      {isLabeling ? (
        <LabelForm node={node} onDone={() => setIsLabeling(false)} onLabeled={onLabeled} />
      ) : (
        <div className={styles.actions}>
          <button type="button" className={buttons.button} onClick={onRead}>
            Read <Kbd keys="Enter" />
          </button>
          <button
            type="button"
            className={buttons.button}
            onClick={onCompare ?? undefined}
            disabled={onCompare === null}
          >
            Compare <Kbd keys="c" />
          </button>
          {mayLabel && (
            <button type="button" className={buttons.button} onClick={() => setIsLabeling(true)}>
              {entry.label === undefined ? "Label" : "Change label"} <Kbd keys="l" />
            </button>
          )}
          <button
            type="button"
            className={buttons.button}
            onClick={onContinue ?? undefined}
            disabled={onContinue === null}
            {...offline}
          >
            Continue from here <Kbd keys="b" />
          </button>
        </div>
      )}
    </footer>
  );
}

function LabelForm({
  node,
  onDone,
  onLabeled,
}: {
  readonly node: TreeNode;
  readonly onDone: () => void;
  readonly onLabeled: () => void;
}) {
  const change = useChange();
  const offline = useOffline();
  const place = useRoutePlace();
  const [text, setText] = useState(node.entry.label ?? "");
  const [error, setError] = useState<string | null>(null);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const label = text.trim();
    try {
      await change("sessions.label", {
        ...place,
        entryId: node.entry.id,
        label: label === "" ? null : label,
      });
      onLabeled();
      onDone();
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  return (
    <form className={styles.actions} onSubmit={(event) => void save(event)}>
      {error !== null && (
        <p className={styles.error} role="alert">
          {error}
        </p>
      )}
      <input
        autoFocus
        className={styles.input}
        value={text}
        maxLength={512}
        aria-label="Label for this entry"
        placeholder="Label; leave empty to remove it"
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || isInputMethod(event)) return;
          event.stopPropagation();
          onDone();
        }}
      />
      <button type="submit" className={buttons.button} data-look="main" {...offline}>
        Save <Kbd keys="Enter" />
      </button>
      <button type="button" className={buttons.button} onClick={onDone}>
        Cancel <Kbd keys="Escape" />
      </button>
    </form>
  );
}
