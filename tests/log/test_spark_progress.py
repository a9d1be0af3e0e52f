"""What is told of a step while Spark works; a tracker stands in for Spark's own."""

from types import SimpleNamespace

from rankdrift.log.engines.spark_progress import Watch


class Tracker:
    """Jobs of one stage each: job -> (tasks done, tasks)."""

    def __init__(self):
        self.jobs = {}

    def getJobIdsForGroup(self, group):
        return list(self.jobs)

    def getJobInfo(self, job):
        return SimpleNamespace(stageIds=[job])

    def getStageInfo(self, stage):
        done, tasks = self.jobs[stage]
        return SimpleNamespace(numCompletedTasks=done, numTasks=tasks)


def test_the_share_is_of_this_step_and_never_goes_back():
    tracker, told = Tracker(), []
    context = SimpleNamespace(statusTracker=lambda: tracker)
    watch = Watch(context, "group", lambda step, share: told.append((step, share)), "one")
    watch.look()
    tracker.jobs[1] = (3, 4)
    watch.look()
    tracker.jobs[2] = (0, 8)  # planned when the first was nearly over
    watch.look()
    tracker.jobs[1] = tracker.jobs[2] = (4, 4)
    watch.begin("two")
    watch.look()
    tracker.jobs[3] = (1, 2)
    watch.look()
    assert told == [("one", 0.0), ("one", 0.75), ("one", 0.75), ("two", 0.0), ("two", 0.5)]
