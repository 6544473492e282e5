import { ActionBarPrimitive, ComposerPrimitive, MessagePrimitive, useAui, useAuiState } from '@assistant-ui/react'
import { Check, Copy, GitFork, Pencil, Trash2, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { conversations } from '@/api/conversations'
import type { Message } from '@/api/types'
import { Branches } from '@/conversation/messages/Branches'
import { useAround } from '@/conversation/messages/context'
import { FileChip } from '@/conversation/messages/FileChip'
import { nameOf, sizeOf, textOf } from '@/conversation/messages/parts'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { notify, notifyError } from '@/ui/toasts'

const LONG = 1_200

/** A message from the user. */
export function UserMessage() {
  const { find, live, replaying } = useAround()
  const message = find(useAuiState((state) => state.message.id))
  const [whole, setWhole] = useState(false)
  if (!message) return null
  const content = textOf(message)
  const files = message.parts.flatMap((part) => (part.type === 'file' ? [part] : []))
  const long = content.length > LONG && !whole
  return (
    <MessagePrimitive.Root className="group/message flex flex-col items-end pt-7">
      <h3 className="sr-only">{text.message.you}</h3>
      {files.length > 0 && (
        <ul aria-label={text.message.attachments} className="mb-1.5 flex max-w-[85%] flex-wrap justify-end gap-1.5">
          {files.map((file) => (
            <li key={JSON.stringify([file.url, file.providerMetadata])}>
              <FileChip url={file.url} name={nameOf(file)} mediaType={file.mediaType} size={sizeOf(file)} />
            </li>
          ))}
        </ul>
      )}
      {content && (
        <div
          dir="auto"
          className="max-w-[85%] rounded-2xl rounded-br-md bg-hover px-4 py-2.5 leading-relaxed break-words whitespace-pre-wrap"
        >
          {long ? `${content.slice(0, LONG)}…` : content}
          {content.length > LONG && (
            <button
              type="button"
              onClick={() => setWhole(!whole)}
              className="ml-1 font-medium text-accent hover:underline"
            >
              {whole ? text.message.showLess : text.message.showMore}
            </button>
          )}
        </div>
      )}
      {!replaying && (
        <div className="mt-0.5 flex min-h-8 items-center gap-0.5">
          <ActionBarPrimitive.Root className="flex items-center gap-0.5 transition-opacity group-focus-within/message:opacity-100 group-hover/message:opacity-100 md:opacity-0">
            <CopyMessage />
            {live === null && (
              <ActionBarPrimitive.Edit asChild>
                <IconButton label={text.common.edit}>
                  <Pencil size={15} aria-hidden />
                </IconButton>
              </ActionBarPrimitive.Edit>
            )}
            <Fork id={message.id} />
            {live === null && <UndoButton message={message} />}
            {live === null && <DeleteMessage message={message} />}
          </ActionBarPrimitive.Root>
          <Branches id={message.stored_id ?? message.id} />
        </div>
      )}
    </MessagePrimitive.Root>
  )
}

/** Copy the text of a message. */
export function CopyMessage() {
  const copied = useAuiState((state) => state.message.isCopied)
  return (
    <ActionBarPrimitive.Copy asChild copiedDuration={2_000}>
      <IconButton label={copied ? text.common.copied : text.common.copy}>
        {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
      </IconButton>
    </ActionBarPrimitive.Copy>
  )
}

/** Open the undo dialog. Hidden if a later prompt would be undone first. */
function UndoButton({ message }: { message: Message }) {
  const { nodes, showUndo } = useAround()
  const last = nodes.filter((node) => node.shown && node.role === 'user' && !node.deleted).at(-1)
  if (last?.id !== message.stored_id) return null
  return (
    <IconButton label={text.undo.title} onClick={() => showUndo(message)}>
      <Undo2 size={15} aria-hidden />
    </IconButton>
  )
}

/** Fork the conversation at this message. */
export function Fork({ id }: { id: string }) {
  const { session } = useAround()
  const [, go] = useLocation()
  return (
    <IconButton
      label={text.message.fork}
      onClick={() =>
        conversations.fork(session.id, id).then((made) => {
          notify(text.message.forked)
          go(`/c/${made.id}`)
        }, notifyError)
      }
    >
      <GitFork size={15} aria-hidden />
    </IconButton>
  )
}

/** Delete a message. The notification restores it. */
export function DeleteMessage({ message }: { message: Message }) {
  const { session } = useAround()
  return (
    <IconButton label={text.message.delete} onClick={() => void session.remove(message).catch(notifyError)}>
      <Trash2 size={15} aria-hidden />
    </IconButton>
  )
}

/** Edit a message. Sending creates a new version. */
export function UserEdit() {
  const aui = useAui()
  return (
    <ComposerPrimitive.Root className="mt-7 ml-auto w-full max-w-[85%] rounded-2xl border border-accent bg-raised p-2.5">
      <ComposerPrimitive.Input
        aria-label={text.message.edit}
        autoFocus
        maxRows={14}
        onKeyDown={(event) => event.key === 'Escape' && aui.composer.cancel()}
        className="w-full resize-none bg-transparent px-1.5 leading-relaxed outline-none"
      />
      <div className="mt-1.5 flex items-center justify-end gap-2">
        <span className="mr-auto px-1.5 text-xs text-faint">{text.message.editHelp}</span>
        <ComposerPrimitive.Cancel asChild>
          <Button look="quiet">{text.common.cancel}</Button>
        </ComposerPrimitive.Cancel>
        <ComposerPrimitive.Send asChild>
          <Button look="primary">{text.common.send}</Button>
        </ComposerPrimitive.Send>
      </div>
    </ComposerPrimitive.Root>
  )
}
