import { GraduationCap } from 'lucide-react'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useProjects } from '@/data/projects'
import { type Skill, useSkillActions, useSkills } from '@/data/skills'
import { Area } from '@/settings/Area'
import { AddSkill, SkillDialog } from '@/settings/SkillDialogs'
import { SkillForm } from '@/settings/SkillForm'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { When } from '@/ui/When'

const words = text.skills

/** The skills of moot's home, of shared folders and of a project: filter, show, enable and add them. */
export default function Skills() {
  const projects = useProjects().filter(({ root_path }) => root_path !== null)
  const [search, setSearch] = useSearchParams()
  const project = search.get('project') ?? ''
  const { data, error, refetch } = useSkills(project)
  const [shown, setShown] = useState<string | null>(null)
  const [adding, setAdding] = useState(false)
  const [writing, setWriting] = useState(false)
  return (
    <Area
      title={text.settings.skills}
      about={words.about}
      actions={
        <>
          {projects.length > 0 && (
            <select
              aria-label={words.project}
              value={project}
              onChange={(event) => setSearch(event.target.value ? { project: event.target.value } : {})}
              className={`${INPUT} max-w-56`}
            >
              <option value="">{words.noProject}</option>
              {projects.map(({ id, name }) => (
                <option key={id} value={id}>
                  {words.withProject(name)}
                </option>
              ))}
            </select>
          )}
          <Button onClick={() => setWriting(true)}>{words.new}</Button>
          <Button look="primary" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        </>
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={3} />
      ) : data.data.length ? (
        <Filtered skills={data.data} project={project} show={setShown} />
      ) : (
        <Empty icon={GraduationCap} title={words.empty}>
          {words.emptyAbout}
        </Empty>
      )}
      {shown !== null && <SkillDialog name={shown} project={project} onClose={() => setShown(null)} />}
      {writing && (
        <Dialog title={words.new} onClose={() => setWriting(false)}>
          <SkillForm skill={null} onClose={() => setWriting(false)} />
        </Dialog>
      )}
      {adding && <AddSkill onClose={() => setAdding(false)} />}
    </Area>
  )
}

interface ListProps {
  skills: readonly Skill[]
  project: string
  show: (name: string) => void
}

function Filtered({ skills, project, show }: ListProps) {
  const [filter, setFilter] = useState('')
  const [category, setCategory] = useState('')
  const [tag, setTag] = useState('')
  const low = filter.toLowerCase()
  const found = skills.filter(
    (skill) =>
      (!category || skill.category === category) &&
      (!tag || skill.tags.includes(tag)) &&
      `${skill.name} ${skill.description} ${skill.tags.join(' ')}`.toLowerCase().includes(low),
  )
  return (
    <>
      <div className="mb-4 flex flex-wrap gap-2">
        <input
          type="search"
          aria-label={words.filter}
          placeholder={words.filter}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          className={`${INPUT} min-w-48 flex-1 max-md:basis-full`}
        />
        <Choice
          label={words.category}
          value={category}
          change={setCategory}
          options={skills.map((skill) => skill.category)}
        />
        <Choice label={words.tag} value={tag} change={setTag} options={skills.flatMap((skill) => skill.tags)} />
      </div>
      {found.length ? (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
          {found.map((skill) => (
            <Entry key={skill.folder} skill={skill} project={project} show={show} />
          ))}
        </ul>
      ) : (
        <p className="text-sm text-muted">{words.none}</p>
      )}
    </>
  )
}

interface ChoiceProps {
  label: string
  value: string
  change: (value: string) => void
  options: readonly string[]
}

function Choice({ label, value, change, options }: ChoiceProps) {
  const known = [...new Set(options.filter(Boolean))].sort()
  if (!known.length) return null
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => change(event.target.value)}
      className={`${INPUT} w-auto! max-w-44`}
    >
      <option value="">{text.common.labeled(label, words.all)}</option>
      {known.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  )
}

export const LOOKS = {
  offered: 'plain',
  enabled: 'good',
  disabled: 'plain',
  changed: 'warn',
  untrusted: 'warn',
  invalid: 'danger',
  shadowed: 'plain',
} as const

function Entry({ skill, project, show }: { skill: Skill } & Omit<ListProps, 'skills'>) {
  const { change } = useSkillActions(project)
  const isUsable = skill.status === 'offered' || skill.status === 'enabled' || skill.status === 'disabled'
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3" data-skill={skill.name}>
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-2">
          {skill.icon && <span aria-hidden>{skill.icon.slice(0, 4)}</span>}
          <span className="font-mono text-sm font-medium break-all">{skill.name}</span>
          <Badge look={LOOKS[skill.status]}>{words.statuses[skill.status]}</Badge>
          {skill.hides_text && <Badge look="warn">{words.hidesText}</Badge>}
        </p>
        <p className="mt-1 text-sm break-words text-muted">{skill.problem || skill.description}</p>
        <p className="mt-1 flex flex-wrap gap-x-2 text-xs text-muted">
          <span>{words.places[skill.place]}</span>
          {skill.category && <span>· {skill.category}</span>}
          {skill.tags.map((tag) => (
            <span key={tag}>#{tag}</span>
          ))}
          {skill.script_files.length > 0 && <span>· {words.scriptCount(skill.script_files.length)}</span>}
          {skill.used_at > 0 && (
            <span>
              · {words.lastUsed} <When at={skill.used_at} />
            </span>
          )}
        </p>
        {change.error && <p className="mt-1 text-sm text-danger">{change.error.message}</p>}
      </div>
      <div className="flex items-center gap-2">
        {isUsable && (
          <select
            aria-label={words.labelOfUse(skill.name)}
            value={skill.status}
            disabled={change.isPending}
            onChange={(event) =>
              change.mutate({ name: skill.name, use: event.target.value as keyof typeof words.uses })
            }
            className={`${INPUT} w-auto!`}
          >
            {Object.entries(words.uses).map(([use, label]) => (
              <option key={use} value={use}>
                {label}
              </option>
            ))}
          </select>
        )}
        <Button aria-label={words.show(skill.name)} onClick={() => show(skill.name)}>
          {words.open}
        </Button>
      </div>
    </li>
  )
}
