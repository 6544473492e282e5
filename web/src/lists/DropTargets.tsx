import { clsx } from 'clsx'
import { Folder } from 'lucide-react'
import { type DragEvent, useState } from 'react'
import type { Conversation } from '@/api/types'
import { useBulkActions } from '@/data/conversations'
import { useProjects } from '@/data/projects'
import { titleOf } from '@/lists/rows'
import { text } from '@/text'

/** Start to drag conversations. Their titles are the dragged text, so that they can also be dropped into a prompt. */
export function drag(event: DragEvent, conversations: readonly Conversation[]): void {
  event.dataTransfer.effectAllowed = 'copyMove'
  event.dataTransfer.setData('text/plain', conversations.map(titleOf).join('\n'))
}

interface Props {
  /** The conversations that are being dragged. */
  dragged: readonly Conversation[]
  /** Called after conversations were dropped on a project. */
  onMoved: () => void
}

/** The projects, shown while conversations are dragged. Dropping them on a project moves them there. */
export function DropTargets({ dragged, onMoved }: Props) {
  const projects = useProjects()
  const actions = useBulkActions()
  const [over, setOver] = useState('')
  return (
    <fieldset className="mx-2 mb-2 max-h-1/2 shrink-0 overflow-y-auto rounded-xl border border-accent/40 bg-raised p-1.5 text-sm">
      <legend className="sr-only">{text.selection.move}</legend>
      <p aria-hidden className="px-2 pt-1 pb-1.5 text-xs text-muted">
        {text.selection.drop(dragged.length)}
      </p>
      {projects.map((project) => {
        const moving = dragged.filter((one) => one.project !== project.id)
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: with the keyboard, the selection bar moves conversations
          <div
            key={project.id}
            data-project={project.id}
            onDragOver={(event) => {
              if (!moving.length) return
              event.preventDefault() // makes it a drop target
              event.dataTransfer.dropEffect = 'move'
              setOver(project.id)
            }}
            onDragLeave={() => setOver('')}
            onDrop={(event) => {
              event.preventDefault()
              void actions.move(moving, project)
              onMoved()
            }}
            className={clsx(
              'flex min-h-9 items-center gap-2 rounded-lg border px-2',
              over === project.id ? 'border-accent bg-accent-soft text-accent' : 'border-transparent',
              !moving.length && 'opacity-50',
            )}
          >
            <Folder size={15} aria-hidden className="pointer-events-none shrink-0" />
            <span className="pointer-events-none truncate">{project.name}</span>
          </div>
        )
      })}
    </fieldset>
  )
}
