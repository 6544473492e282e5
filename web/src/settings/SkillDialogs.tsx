import { type FormEvent, useState } from 'react'
import {
  type Candidate,
  type Finding,
  type SkillDetail,
  type Source,
  useIndexEntries,
  useSkill,
  useSkillActions,
} from '@/data/skills'
import { SkillForm } from '@/settings/SkillForm'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'
import { notify } from '@/ui/toasts'

const words = text.skills

/** A dialog with the content of a skill and the decisions about it. */
export function SkillDialog({ name, project, onClose }: { name: string; project: string; onClose: () => void }) {
  const { data, error } = useSkill(name, project)
  return (
    <Dialog title={name} onClose={onClose}>
      {error ? (
        <Failed error={error} className="m-5" />
      ) : data ? (
        <Detail skill={data} project={project} onClose={onClose} />
      ) : (
        <Loading rows={4} className="m-5" />
      )}
    </Dialog>
  )
}

function Detail({ skill, project, onClose }: { skill: SkillDetail; project: string; onClose: () => void }) {
  const { change, accept, remove } = useSkillActions(project)
  const [deleting, setDeleting] = useState(false)
  const [editing, setEditing] = useState(false)
  const failure = change.error ?? accept.error ?? remove.error
  const canDecide = skill.status === 'offered' || skill.status === 'enabled' || skill.status === 'disabled'
  if (editing) return <SkillForm skill={skill} onClose={() => setEditing(false)} />
  return (
    <div className="space-y-4 overflow-y-auto p-5 text-sm">
      <p className="break-words">{skill.description}</p>
      <p className="font-mono text-xs break-all text-muted">{skill.folder}</p>
      {skill.status === 'changed' && (
        <div className="rounded-lg border border-warn/40 bg-warn-soft p-3">
          <p>{words.changedAbout}</p>
          <Button
            look="primary"
            className="mt-2"
            disabled={accept.isPending}
            onClick={() => accept.mutate({ name: skill.name, digest: skill.digest })}
          >
            {words.accept}
          </Button>
        </div>
      )}
      {skill.problem && skill.status !== 'changed' && <p className="text-danger">{skill.problem}</p>}
      {canDecide && skill.script_files.length > 0 && (
        <Field label={words.scripts}>
          {(field) => (
            <select
              {...field}
              className={INPUT}
              value={skill.scripts}
              onChange={(event) =>
                change.mutate({ name: skill.name, scripts: event.target.value as keyof typeof words.policies })
              }
            >
              {Object.entries(words.policies).map(([policy, label]) => (
                <option key={policy} value={policy}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {skill.status === 'enabled' && (
        <Field label={words.priority} about={words.priorityAbout}>
          {(field) => (
            <input
              {...field}
              type="number"
              min={-1000}
              max={1000}
              defaultValue={skill.priority}
              onBlur={(event) => change.mutate({ name: skill.name, priority: Number(event.target.value) })}
              className={INPUT}
            />
          )}
        </Field>
      )}
      <Content content={skill} />
      {failure && <Failed error={failure} />}
      <div className="flex flex-wrap justify-end gap-2 pt-1">
        {skill.place === 'home' &&
          (deleting ? (
            <>
              <p className="mr-auto basis-full">{`${words.removeTitle(skill.name)} ${words.removeAbout}`}</p>
              <Button onClick={() => setDeleting(false)}>{text.common.cancel}</Button>
              <Button
                look="danger"
                disabled={remove.isPending}
                onClick={() => remove.mutate(skill.name, { onSuccess: onClose })}
              >
                {words.remove}
              </Button>
            </>
          ) : (
            <Button look="danger" onClick={() => setDeleting(true)}>
              {words.remove}
            </Button>
          ))}
        {!deleting && skill.place === 'home' && !skill.hides_text && (
          <Button onClick={() => setEditing(true)}>{text.common.edit}</Button>
        )}
        {!deleting && <Button onClick={onClose}>{text.common.close}</Button>}
      </div>
    </div>
  )
}

interface Shown {
  allowed_tools: readonly string[]
  body: string
  files: readonly string[]
  findings: readonly Finding[]
  digest: string
}

/** What a person must know before they use a skill: hidden text, problems, instructions and files. */
function Content({ content }: { content: Shown }) {
  return (
    <>
      {content.findings.some((finding) => finding.hides) && (
        <p role="alert" className="rounded-lg border border-warn/40 bg-warn-soft p-3">
          {words.warning}
        </p>
      )}
      {content.findings.length > 0 && (
        <section aria-label={words.problems}>
          <h3 className="mb-1 font-medium">{words.problems}</h3>
          <ul className="space-y-1">
            {content.findings.map((finding) => (
              <li key={`${finding.file}:${finding.line}:${finding.text}`} className="break-words">
                <span className="font-mono text-xs text-muted">{`${finding.file}:${finding.line}`}</span>{' '}
                <span className={finding.is_error ? 'text-danger' : 'text-warn'}>{finding.text}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {content.allowed_tools.length > 0 && (
        <p className="text-muted">
          {words.allowedTools} <span className="font-mono text-xs">{content.allowed_tools.join(', ')}</span>
        </p>
      )}
      <section aria-label={words.instructions}>
        <h3 className="mb-1 font-medium">{words.instructions}</h3>
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
          tabIndex={0}
          className="max-h-72 overflow-auto rounded-lg bg-sunken p-3 font-mono text-xs whitespace-pre-wrap"
        >
          {content.body}
        </pre>
      </section>
      {content.files.length > 0 && (
        <section aria-label={words.files}>
          <h3 className="mb-1 font-medium">{words.files}</h3>
          <ul className="font-mono text-xs break-all text-muted">
            {content.files.map((file) => (
              <li key={file}>{file}</li>
            ))}
          </ul>
        </section>
      )}
      <p className="text-xs break-all text-muted">
        {text.common.labeled(words.hash, '')}
        <span className="font-mono">{content.digest}</span>
      </p>
    </>
  )
}

/** A dialog that shows the skills of a source, and installs one exactly as it was shown. */
export function AddSkill({ onClose }: { onClose: () => void }) {
  const { preview, install } = useSkillActions()
  const entries = useIndexEntries()
  const [source, setSource] = useState<Source | null>(null)
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const wanted = {
      source: String(given.get('source')).trim(),
      commit: String(given.get('commit')).trim(),
      path: String(given.get('path')).trim(),
    }
    show(wanted)
  }
  function show(wanted: Source) {
    setSource(wanted)
    preview.mutate(wanted)
  }
  function add(candidate: Candidate) {
    if (!source) return
    install.mutate(
      { ...source, name: candidate.name, digest: candidate.digest },
      {
        onSuccess: () => {
          onClose()
          notify(words.installed(candidate.name))
        },
      },
    )
  }
  return (
    <Dialog title={words.add} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <form onSubmit={submit} className="space-y-4">
          <Field label={words.source} about={words.sourceAbout}>
            {(field) => <input {...field} name="source" required className={`${INPUT} font-mono`} />}
          </Field>
          <Field label={words.commit} about={words.commitAbout}>
            {(field) => <input {...field} name="commit" className={`${INPUT} font-mono`} />}
          </Field>
          <Field label={words.path}>
            {(field) => <input {...field} name="path" className={`${INPUT} font-mono`} />}
          </Field>
          <div className="flex justify-end gap-2">
            <Button look="quiet" onClick={onClose}>
              {text.common.cancel}
            </Button>
            <Button type="submit" disabled={preview.isPending}>
              {words.preview}
            </Button>
          </div>
        </form>
        {entries.error && <Failed error={entries.error} />}
        {entries.data && entries.data.data.length > 0 && (
          <section aria-label={words.indexed}>
            <h3 className="mb-1 font-medium">{words.indexed}</h3>
            <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
              {entries.data.data
                .filter((entry) => entry.kind === 'skill')
                .map((entry) => (
                  <li key={`${entry.index} ${entry.name}`} className="flex items-center gap-3 px-3 py-2">
                    <div className="min-w-0 grow">
                      <p className="font-mono text-xs font-medium break-all">{entry.name}</p>
                      <p className="text-xs break-words text-muted">{entry.description}</p>
                    </div>
                    <Button
                      aria-label={words.show(entry.name)}
                      disabled={preview.isPending}
                      onClick={() => show({ source: entry.name, commit: '', path: '' })}
                    >
                      {words.open}
                    </Button>
                  </li>
                ))}
            </ul>
          </section>
        )}
        {preview.error && <Failed error={preview.error} />}
        {preview.data?.data.map((candidate) => (
          <section key={candidate.name} aria-label={candidate.name} className="space-y-3 border-t border-line pt-4">
            <h3 className="font-mono font-medium">{candidate.name}</h3>
            <p className="break-words text-muted">{candidate.description}</p>
            <Content content={candidate} />
            <Button
              look="primary"
              disabled={install.isPending || candidate.findings.some((finding) => finding.is_error)}
              onClick={() => add(candidate)}
            >
              {words.install(candidate.name)}
            </Button>
          </section>
        ))}
        {install.error && <Failed error={install.error} />}
      </div>
    </Dialog>
  )
}
