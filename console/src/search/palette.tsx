import { Dialog } from "@base-ui/react/dialog";
import { GitBranch, X } from "lucide-react";
import type { KeyboardEvent } from "react";
import { Fragment, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { errorText } from "../connect/gateway.tsx";
import { useSessionNames } from "../live/session-names.ts";
import { roleWord } from "../session/rows.ts";
import buttons from "../ui/button.module.css";
import { isInputMethod } from "../ui/keys.tsx";
import modal from "../ui/modal.module.css";
import { useDelayedField } from "../ui/query-fields.ts";
import { HitText } from "./hit-text.tsx";
import styles from "./palette.module.css";
import type { PaletteItem } from "./palette-items.ts";
import { usePaletteItems } from "./palette-items.ts";

/** Sessions, pages, actions and messages, usable with the keyboard alone: typing, arrow keys and Enter. */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const [words, setWords] = useState("");
  const [text, setText] = useDelayedField(words, setWords);
  const [chosen, setChosen] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const { items, isSearching } = usePaletteItems(text, words);
  const [, navigate] = useLocation();
  // Read before the field takes the focus.
  const [opener] = useState(() => document.activeElement);
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    items.findIndex(({ id }) => id === chosen),
  );
  const current = items[at];

  useEffect(() => {
    if (current !== undefined)
      list.current?.querySelector(`#${CSS.escape(optionId(current))}`)?.scrollIntoView({ block: "nearest" });
  }, [current]);

  // Going back changes the page under the palette, so the palette closes.
  const onTravel = useEffectEvent(onClose);
  useEffect(() => {
    const close = () => onTravel();
    addEventListener("popstate", close);
    return () => removeEventListener("popstate", close);
  }, []);

  const act = async (item: PaletteItem) => {
    try {
      const path = typeof item.act === "string" ? item.act : await item.act();
      onClose();
      if (path !== null) navigate(path);
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  // Messages arrive after a pause. Enter opens the first result for the current text, not for an earlier one.
  const isBehind = isSearching || words !== text;
  const [isEntered, setIsEntered] = useState(false);
  const openEntered = useEffectEvent(() => {
    setIsEntered(false);
    if (current !== undefined) void act(current);
  });
  useEffect(() => {
    if (isEntered && !isBehind) openEntered();
  }, [isEntered, isBehind]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (isInputMethod(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next =
        Math.abs(step) === 1
          ? (at + step + items.length) % items.length
          : Math.max(0, Math.min(items.length - 1, at + step));
      setChosen(items[next]?.id ?? null);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      if (current === undefined || current.group === "Messages") setIsEntered(true);
      else void act(current);
    }
  };

  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className={modal.backdrop} />
        <Dialog.Popup
          className={styles.popup}
          aria-label="Go to"
          finalFocus={() => opener instanceof HTMLElement && opener.isConnected && opener}
        >
          <div className={styles.head}>
            <input
              autoFocus
              className={styles.input}
              value={text}
              role="combobox"
              aria-label="Search sessions, pages, actions and messages"
              aria-expanded
              aria-controls="palette-list"
              aria-activedescendant={current === undefined ? undefined : optionId(current)}
              placeholder="Search sessions, pages, actions and messages"
              maxLength={200}
              onChange={({ target }) => {
                setText(target.value);
                setChosen(null);
                setIsEntered(false);
              }}
              onKeyDown={onKeyDown}
            />
            <Dialog.Close className={buttons.button} data-look="icon" aria-label="Close">
              <X size={16} aria-hidden />
            </Dialog.Close>
          </div>
          {error !== null && (
            <p className={styles.error} role="alert">
              {error}
            </p>
          )}
          <div
            ref={list}
            id="palette-list"
            className={styles.list}
            role="listbox"
            aria-label="Matches"
            aria-busy={isSearching}
          >
            {items.map((item, index) => (
              <Fragment key={item.id}>
                {item.group !== items[index - 1]?.group && (
                  <div className={styles.group} role="presentation">
                    {item.group}
                  </div>
                )}
                <PaletteRow
                  item={item}
                  isCurrent={item === current}
                  onPoint={() => setChosen(item.id)}
                  onAct={() => void act(item)}
                />
              </Fragment>
            ))}
          </div>
          {items.length === 0 && <p className={styles.empty}>{isSearching ? "Searching…" : "No results."}</p>}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function PaletteRow({
  item,
  isCurrent,
  onPoint,
  onAct,
}: {
  readonly item: PaletteItem;
  readonly isCurrent: boolean;
  readonly onPoint: () => void;
  readonly onAct: () => void;
}) {
  const { hit } = item;
  const names = useSessionNames(useMemo(() => (hit === undefined ? [] : [hit]), [hit]));
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and handles the keys for its list.
    <div
      id={optionId(item)}
      role="option"
      tabIndex={-1}
      className={styles.row}
      aria-selected={isCurrent}
      data-thread={item.thread}
      data-hit={hit === undefined ? undefined : true}
      // Pressing an item must not take the focus from the field.
      onPointerDown={(event) => event.preventDefault()}
      onPointerMove={isCurrent ? undefined : onPoint}
      onClick={onAct}
    >
      {item.thread !== undefined && <span className={styles.thread} aria-hidden />}
      {hit === undefined ? (
        <>
          <span className={styles.name} dir="auto">
            {item.name}
          </span>
          {item.note !== undefined && (
            <span className={styles.note} data-note={item.note}>
              {item.note}
            </span>
          )}
        </>
      ) : (
        <>
          <span className={styles.name} dir="auto">
            <HitText hit={hit} />
          </span>
          <span className={styles.note}>
            {!hit.active && <GitBranch size={12} aria-label="on another branch" />}{" "}
            <bdi>{names.nameOf(hit)}</bdi> · {roleWord(hit.role)}
          </span>
        </>
      )}
    </div>
  );
}

function optionId({ id }: PaletteItem): string {
  return `palette-${id.replace(/[^\w-]/g, "_")}`;
}
